# Maximum-likelihood factor analysis by R's factanal, as reference for tests/suite/factor.rs.
# Rscript factor.R FOLDER_OF_DATA_SETS > factor.json
folder <- commandArgs(trailingOnly = TRUE)[1]
read <- function(name) read.csv(file.path(folder, paste0(name, ".csv")))
fit <- function(set, x, q) {
  x <- x[stats::complete.cases(x), ]
  f <- factanal(x, q, rotation = "none", nstart = 5,
                control = list(opt = list(factr = 10, maxit = 10000, pgtol = 1e-12)))
  list(set = set, n = nrow(x), q = q, dof = unname(f$dof), discrepancy = unname(f$criteria["objective"]),
       uniquenesses = unname(f$uniquenesses))
}
number <- function(x) paste(format(x, digits = 15, trim = TRUE), collapse = ", ")
json <- function(r) sprintf(
  '  {"set": "%s", "n": %d, "q": %d, "dof": %d, "discrepancy": %s, "uniquenesses": [%s]}',
  r$set, r$n, r$q, as.integer(r$dof), number(r$discrepancy), number(r$uniquenesses))
set.seed(1)
hs <- read("holzinger_swineford1939_26")
bfi <- read("bfi_train")
results <- list(
  fit("holzinger_swineford1939_26", hs[, grep("^t(0|1|20|21|22|23|24)", names(hs))], 4),
  fit("bfi_train", bfi[, grep("^[ACENO][1-5]$", names(bfi))], 5))
cat('{"made_with": "', R.version.string, ', factanal, nstart 5, factr 10, pgtol 1e-12",\n "results": [\n', sep = "")
cat(sapply(results, json), sep = ",\n")
cat("\n ]}\n")
