// Browsers start no worker from a file on disk: there a hidden frame does the work of the search.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.document.open();
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.document.write("<!doctype html>");
      this.inside.document.close();
      const script = this.inside.document.createElement("script");
      script.src = url;
      this.loaded = new Promise((resolve, reject) => { script.onload = resolve; script.onerror = reject; });
      this.inside.document.head.append(script);
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
