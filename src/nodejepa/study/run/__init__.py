"""From a specification to records.

spec, cell      which cells a study has; identity says when two results are the same result
runner          measures what has no record yet: worklist, order and outcome; estimate says how long it takes
processes       starts a worker for each cell; worker measures it and writes its line
measure         one cell, inside its worker; records keeps what it found
encoder_store   trained encoders, shared by all studies; heads and scratch: what classifiers make of them
scoring         a method or a trained run on a data set, with everything needed to repeat the figure
"""
