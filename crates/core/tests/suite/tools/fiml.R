# Maximised likelihood of the observed cells of factor models: lavaan's FIML, for tests/suite/factor_holes.rs.
#
#   Rscript fiml.R FOLDER > fiml.json
#
# FOLDER holds bfi_train.csv, airquality.csv and sat_act.csv. An unrotated exploratory model needs q(q − 1)/2 loadings fixed: those above the
# diagonal are 0, which changes no likelihood. Uniquenesses are not bounded.
suppressMessages(library(lavaan))
folder <- commandArgs(trailingOnly = TRUE)[1]

syntax <- function(names, q) paste(sapply(seq_len(q), function(k) {
  paste0("f", k, " =~ ", paste0("NA*", names[k:length(names)], collapse = " + "))
}), collapse = "\n")

fit <- function(file, columns, q, standardise) {
  data <- read.csv(file.path(folder, paste0(file, ".csv")))
  x <- if (is.null(columns)) data[2:26] else data[columns]
  if (standardise) x <- as.data.frame(scale(x))
  model <- cfa(syntax(names(x), q), x, std.lv = TRUE, orthogonal = TRUE, missing = "ml", meanstructure = TRUE,
               control = list(rel.tol = 1e-14, iter.max = 5000, eval.max = 10000), se = "none", optim.force.converged = TRUE)
  m <- fitMeasures(model, c("logl", "unrestricted.logl", "chisq", "df", "baseline.chisq", "baseline.df", "cfi", "tli", "srmr"))
  list(set = file, columns = names(x), q = q, standardised = standardise, rows = lavInspect(model, "nobs"),
       converged = lavInspect(model, "converged"), measures = as.list(m))
}

results <- list(
  fit("bfi_train", NULL, 5, FALSE),
  fit("airquality", c("Ozone", "Solar.R", "Wind", "Temp"), 1, FALSE),
  fit("sat_act", c("gender", "education", "age", "ACT", "SATV", "SATQ"), 1, TRUE),
  fit("sat_act", c("gender", "education", "age", "ACT", "SATV", "SATQ"), 2, TRUE))
cat(jsonlite::toJSON(list(made_with = list(R = R.version.string, lavaan = as.character(packageVersion("lavaan"))),
                          results = results), auto_unbox = TRUE, digits = I(15), pretty = TRUE), "\n")
