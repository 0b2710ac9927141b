# Rotations by R, for tests/suite/rotate.rs:
#
#     Rscript rotations.R FOLDER > rotations.json        # FOLDER holds the data sets
#
# Unrotated maximum-likelihood loadings come from factanal. Rotations are GPArotation's gradient projection with a tolerance of
# 1e-10 (1e-7 to 1e-9 is what 5000 steps reach) from the best of 1 + 15 starts (found at 1e-4), stats::varimax with a tolerance of
# 1e-15, stats::promax and psych's Promax of loadings after that varimax (their own stops at 1e-5, which leaves 1e-3 in the result),
# and psych's target.rot.
#
# Needs GPArotation, psych and jsonlite.

suppressMessages({
  library(GPArotation)
  library(psych)
  library(jsonlite)
})
folder <- commandArgs(TRUE)[1]
set.seed(1)

table_of <- function(name) read.csv(file.path(folder, paste0(name, ".csv")), check.names = FALSE)
matrix_of <- function(name) as.matrix(table_of(name)[, -1])
bfi <- table_of("bfi_train")[, 2:26]
nine <- table_of("holzinger_swineford1939_9")
many <- table_of("holzinger_swineford1939_26")
inputs <- list(
  harman74_cor = list(R = matrix_of("harman74_cor"), q = 4),
  ability_cov = list(R = cov2cor(matrix_of("ability_cov")), q = 2),
  bfi_train = list(R = cor(bfi[complete.cases(bfi), ]), q = 5),
  holzinger_swineford1939_9 = list(R = cor(nine[, paste0("x", 1:9)]), q = 3),
  holzinger_swineford1939_26 = list(R = cor(many[, grep("^t(0|1|2[0-4])", names(many))]), q = 4)
)

eps <- 1e-10
maxit <- 5000
# The best of several starts of GPArotation; an oblique rotation when `oblique`.
gpa <- function(A, method, oblique, normalize = FALSE, args = NULL, starts = 16) {
  rotate <- if (oblique) GPFoblq else GPForth
  best <- NULL
  for (k in seq_len(starts)) {
    turn <- if (k == 1) diag(ncol(A)) else Random.Start(ncol(A))
    r <- suppressWarnings(rotate(A, Tmat = turn, normalize = normalize, eps = 1e-4, maxit = 500, method = method, methodArgs = args))
    f <- tail(r$Table[, 2], 1)
    if (is.null(best) || f < best$f - 1e-6) best <- list(f = f, turn = r$Th)
  }
  r <- suppressWarnings(rotate(A, Tmat = best$turn, normalize = normalize, eps = eps, maxit = maxit, method = method, methodArgs = args))
  answer(r$loadings, if (oblique) r$Phi else diag(ncol(A)), tail(r$Table[, 2], 1), tail(r$Table[, 3], 1))
}
answer <- function(L, Phi, value = NULL, log10_gradient = NULL) {
  attributes(L) <- list(dim = dim(L))
  attributes(Phi) <- list(dim = dim(Phi))
  Filter(Negate(is.null), list(pattern = L, correlation = Phi, criterion = value, log10_gradient = log10_gradient))
}
of_promax <- function(x) {
  U <- x$rotmat
  answer(unclass(x$loadings), solve(t(U) %*% U))
}

rotations <- function(A) {
  p <- nrow(A)
  q <- ncol(A)
  # A target that these loadings nearly reach: the signs of the large varimax loadings; "partial" leaves those free.
  V <- unclass(varimax(A, eps = 1e-15)$loadings)
  full <- 0.7 * sign(V) * (abs(V) > 0.4)
  partial <- full
  partial[partial != 0] <- NA
  fixed <- matrix(as.numeric(!is.na(partial)), p, q)
  zeros <- matrix(0, p, q)
  vm <- varimax(A, eps = 1e-15)
  raw <- varimax(A, normalize = FALSE, eps = 1e-15)
  list(
    targets = list(full = full, partial = partial),
    results = list(
      `varimax, stats` = answer(unclass(vm$loadings), diag(q)),
      `varimax without kaiser, stats` = answer(unclass(raw$loadings), diag(q)),
      `varimax, GPArotation` = gpa(A, "varimax", FALSE, TRUE),
      `quartimax` = gpa(A, "quartimax", FALSE),
      `quartimax with kaiser` = gpa(A, "quartimax", FALSE, TRUE),
      `equamax` = gpa(A, "cf", FALSE, args = list(kappa = q / (2 * p))),
      `parsimax` = gpa(A, "cf", FALSE, args = list(kappa = (q - 1) / (p + q - 2))),
      `promax, stats` = of_promax(promax(V, m = 4)),
      `promax power 3, psych` = { r <- Promax(V, m = 3); answer(unclass(r$loadings), r$Phi) },
      `oblimin` = gpa(A, "quartimin", TRUE),
      `oblimin with kaiser` = gpa(A, "quartimin", TRUE, TRUE),
      `oblimin gamma -0.5` = gpa(A, "oblimin", TRUE, args = list(gam = -0.5)),
      `geomin-orthogonal` = gpa(A, "geomin", FALSE, args = list(delta = 0.01)),
      `geomin` = gpa(A, "geomin", TRUE, args = list(delta = 0.01)),
      `geomin with kaiser` = gpa(A, "geomin", TRUE, TRUE, args = list(delta = 0.01)),
      `target full orthogonal` = gpa(A, "target", FALSE, args = list(Target = full)),
      `target full oblique` = gpa(A, "target", TRUE, args = list(Target = full)),
      `target partial orthogonal` = gpa(A, "pst", FALSE, args = list(W = fixed, Target = zeros)),
      `target partial oblique` = gpa(A, "pst", TRUE, args = list(W = fixed, Target = zeros)),
      `procrustes oblique, psych` = { r <- target.rot(A, full); answer(unclass(r$loadings), r$Phi) }
    )
  )
}

sets <- lapply(inputs, function(input) {
  fit <- factanal(covmat = input$R, factors = input$q, rotation = "none",
                  control = list(nstart = 3, opt = list(factr = 10, pgtol = 1e-12, maxit = 5000)))
  A <- unclass(fit$loadings)
  attributes(A) <- list(dim = dim(A))
  c(list(loadings = A), rotations(A))
})
made_with <- paste0("rotations.R, ", R.version.string, ", GPArotation ", packageVersion("GPArotation"), ", psych ", packageVersion("psych"))
cat(toJSON(c(list(made_with = made_with), sets), digits = I(15), auto_unbox = TRUE, na = "null"), "\n")
