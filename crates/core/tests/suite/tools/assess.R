# Fit indices, sampling adequacy and standard errors as R gives them; prints the JSON that `tests/suite/assess.rs` reads:
#
#     Rscript assess.R FOLDER > assess.json      # FOLDER holds the data sets
#
# Needs psych, lavaan and jsonlite. factanal finds the maximum on the correlation scale, psych::fa.stats judges it; lavaan fits the
# covariance matrix with exploratory blocks, rotates and gives standard errors from the expected information (not of `ability`: the
# variances there are so far apart that its optimiser does not end). Oblique rotations are of loadings as they are: with Kaiser's or
# variances' weights this lavaan leaves the correlation of the factors out when it differentiates the weights. Its errors of standardised
# uniquenesses come from forward differences and have three digits.
suppressMessages({library(psych); library(lavaan); library(jsonlite)})
folder <- commandArgs(TRUE)[1]
csv <- function(name) read.csv(file.path(folder, paste0(name, ".csv")), check.names = FALSE)
square <- function(name) { d <- csv(name); m <- as.matrix(d[, -1]); dimnames(m) <- list(d[[1]], d[[1]]); m }
ml <- function(x) { x <- as.matrix(x); list(s = cov(x) * (nrow(x) - 1) / nrow(x), n = nrow(x)) }

bfi <- csv("bfi_train")
bfi <- bfi[, grep("^[ACENO][1-5]$", names(bfi))]
hs <- csv("holzinger_swineford1939_9")
sets <- list(
  harman74 = c(list(s = square("harman74_cor"), n = 145), q = 4),
  bfi = c(ml(bfi[complete.cases(bfi), ]), q = 5),
  hs9 = c(ml(hs[, paste0("x", 1:9)]), q = 3),
  ability = c(list(s = square("ability_cov"), n = 112), q = 2)
)
bare <- function(m) unname(as.matrix(m))

fit <- function(set) {
  r <- cov2cor(set$s)
  f <- factanal(factors = set$q, covmat = r, n.obs = set$n, rotation = "none",
                control = list(nstart = 5, opt = list(factr = 10, maxit = 1000)))
  l <- unclass(loadings(f)); attr(l, "dimnames") <- NULL
  st <- fa.stats(r, f = l, n.obs = set$n, alpha = 0.1)
  null <- st$null.chisq - st$null.dof
  b <- cortest.bartlett(r, n = set$n)
  k <- KMO(r)
  list(loadings = bare(l), uniquenesses = unname(f$uniquenesses), chi2 = unname(f$STATISTIC), dof = f$dof, p_value = unname(f$PVAL),
       objective = st$objective, rmsea = unname(st$RMSEA[1]), rmsea_interval = unname(st$RMSEA[2:3]), tli = st$TLI,
       cfi = 1 - max(st$STATISTIC - st$dof, 0) / max(null, st$STATISTIC - st$dof, 0),
       null_chi2 = st$null.chisq, rms = st$rms, bic = st$BIC,
       bartlett = list(chi2 = b$chisq, dof = b$df, p_value = b$p.value), kmo = k$MSA, kmo_items = unname(k$MSAi), smc = unname(smc(r)))
}

rotated <- function(set, rotation, orthogonal, kaiser, standardised) {
  v <- colnames(set$s); q <- set$q
  model <- paste(paste0('efa("b")*F', 1:q, collapse = " + "), "=~", paste(v, collapse = " + "))
  set.seed(1)
  f <- lavaan::sem(model, sample.cov = set$s, sample.nobs = set$n, sample.cov.rescale = FALSE, information = "expected",
           rotation = rotation, rotation.se = "bordered", check.gradient = FALSE,
           rotation.args = list(orthogonal = orthogonal, row.weights = if (kaiser) "kaiser" else "none", std.ov = standardised,
                                algorithm = "gpa", rstarts = 20, tol = 1e-10, max.iter = 100000, geomin.epsilon = 0.01))
  e <- lavInspect(f, "est"); s <- lavInspect(f, "se")
  z <- standardizedSolution(f)
  own <- function(i) z$se[z$op == "~~" & z$lhs == i & z$rhs == i]
  m <- fitMeasures(f, c("srmr", "logl", "aic", "bic", "npar", "chisq", "df"))
  list(rotation = rotation, orthogonal = orthogonal, kaiser = kaiser, standardised = standardised,
       loadings = bare(e$lambda), correlation = bare(e$psi), uniquenesses = unname(diag(e$theta)),
       se = list(loadings = bare(s$lambda), correlation = bare(s$psi), uniquenesses = unname(diag(s$theta))),
       standardised_se = unname(sapply(v, own)), measures = as.list(m))
}

rotations <- function(set) list(
  rotated(set, "varimax", TRUE, FALSE, FALSE),
  rotated(set, "varimax", TRUE, TRUE, FALSE),
  rotated(set, "varimax", TRUE, FALSE, TRUE),
  rotated(set, "oblimin", FALSE, FALSE, FALSE),
  rotated(set, "geomin", FALSE, FALSE, FALSE))

grid <- expand.grid(x = c(0.5, 5, 30, 226.7, 1000), df = c(1, 12, 186), ncp = c(0.1, 7, 60, 400, 3000))
grid$p <- pchisq(grid$x, grid$df, ncp = grid$ncp)
results <- lapply(names(sets), function(name) {
  set <- sets[[name]]
  c(list(set = name, covariance = bare(set$s), n = set$n, q = set$q), fit(set), list(rotated = if (name == "ability") list() else rotations(set)))
})
version <- function(p) as.character(packageVersion(p))
cat(toJSON(list(
  `_made_with` = list(R = R.version.string, psych = version("psych"), lavaan = version("lavaan"), jsonlite = version("jsonlite")),
  what = "factanal, psych::fa.stats, KMO, cortest.bartlett, smc; lavaan's rotated exploratory blocks with standard errors; noncentral chi-square",
  results = results, noncentral = list(x = grid$x, df = grid$df, ncp = grid$ncp, p = grid$p)),
  digits = NA, auto_unbox = TRUE), "\n")
