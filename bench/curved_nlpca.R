# pcaMethods' nlpca for bench/curved_networks.py: Rscript curved_nlpca.R TABLE.csv COMPONENTS STEPS FITTED.csv
# Writes the fitted rows and prints seconds; STEPS of 0 are the default, twice the number of cells.
suppressMessages(library(pcaMethods))
given <- commandArgs(trailingOnly = TRUE)
x <- as.matrix(read.csv(given[1], header = FALSE))
steps <- as.integer(given[3])
if (steps == 0) steps <- 2 * prod(dim(x))
spent <- system.time(model <- nlpca(x, nPcs = as.integer(given[2]), maxSteps = steps, verbose = FALSE))
write.table(fitted(model, x), given[4], sep = ",", row.names = FALSE, col.names = FALSE)
cat(spent[["elapsed"]], "\n")
