"""From a specification to records.

spec, cell      which cells a study has, and when two results are the same result
runner          measures what has no record yet: worklist, order and outcome; estimate says how long it takes
worker          a process for each cell, which measures it and writes its line
measure         one cell, inside its worker; records keeps what it found
encoder_store   trained networks, shared by all studies
scoring         a method or a trained run on a data set, with everything needed to repeat the figure
"""
