// Builds the page from the data beside it.

const KINDS = {
  text: textSection, facts: factsSection, table: tableSection, curves: curvesSection, dots: dotsSection,
  confusion: confusionSection, map: mapSection,
};

function textSection(section) {
  return section.paragraphs.map((words) => el("p", {}, words));
}

function factsSection(section) {
  return [el("dl", {}, ...section.values.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]))];
}

function buildSection(section) {
  const parts = KINDS[section.kind](section).filter(Boolean);
  if (section.kind === "text") return el("div", { class: `section text ${section.tone}` }, ...parts);
  if (section.folded) {
    return el("section", { class: `section ${section.kind}` }, el("details", {}, el("summary", {}, section.title), ...parts));
  }
  return el("section", { class: `section ${section.kind}`, "aria-label": section.title }, el("h3", {}, section.title), ...parts);
}

function buildReport(report) {
  const main = document.getElementById("report");
  const links = report.chapters.map((chapter, i) => el("li", {}, el("a", { href: `#chapter-${i + 1}` }, chapter.title)));
  main.replaceChildren(
    el("header", {}, el("h1", {}, report.title), report.subtitle ? el("p", { class: "quiet" }, report.subtitle) : null,
      links.length > 1 ? el("nav", { "aria-label": "Chapters" }, el("ul", {}, ...links)) : null),
    ...report.chapters.map((chapter, i) => el("article", { class: "chapter", id: `chapter-${i + 1}` },
      el("header", {}, chapter.title === report.title ? null : el("h2", {}, chapter.title), chapter.subtitle ? el("p", { class: "quiet" }, chapter.subtitle) : null),
      ...chapter.sections.map(buildSection))),
    el("footer", { class: "quiet" }, report.footer),
  );
}

buildReport(JSON.parse(document.getElementById("data").textContent));
