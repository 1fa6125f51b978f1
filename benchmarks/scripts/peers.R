# Peers of budgets.py on the same matrices: Rscript scripts/peers.R FOLDER, with a CSV file per matrix (a header and the
# rows of the correlation matrix). Needs the packages msPCA, nsprcomp and elasticnet (which needs lars); what is not
# installed is said to be absent. Seconds are those of the processor.
folder <- commandArgs(TRUE)[1]
cases <- list(
  list("pitprops", 6, 4), list("mtcars_corr", 3, 4),
  list("ionosphere_corr", 2, c(5, 10, 20)), list("ionosphere_corr", 3, c(5, 10, 20)),
  list("lung_corr", 2, c(5, 10, 20)), list("lung_corr", 3, c(5, 10, 20)),
  list("arrhythmia_corr", 2, c(5, 10, 20)), list("arrhythmia_corr", 3, c(5, 10, 20)),
  list("snp500", 4, c(5, 10, 15, 20, 25, 30, 35))
)
methods <- list(
  msPCA = function(C, A, r, k) {
    msPCA::mspca(C, r = r, ks = rep(k, r), verbose = FALSE, checkPSD = FALSE)$x_best
  },
  nsprcomp = function(C, A, r, k) {
    nsprcomp::nsprcomp(A, ncomp = r, k = rep(k, r), center = FALSE, scale. = FALSE)$rotation
  },
  elasticnet = function(C, A, r, k) {
    elasticnet::spca(C, K = r, para = rep(k, r), type = "Gram", sparse = "varnum")$loadings
  }
)
cat("| data | r | loadings each | method | explained, % | off-diagonal of X'X | seconds |\n|---|---|---|---|---|---|---|\n")
for (case in cases) {
  file <- file.path(folder, paste0(case[[1]], ".csv"))
  if (!file.exists(file)) next
  C <- as.matrix(read.csv(file))
  dimnames(C) <- NULL
  spectrum <- eigen((C + t(C)) / 2, symmetric = TRUE)
  A <- t(spectrum$vectors %*% diag(sqrt(pmax(spectrum$values, 0))))
  r <- case[[2]]
  for (k in case[[3]]) for (name in names(methods)) {
    if (!requireNamespace(name, quietly = TRUE)) {
      cat(sprintf("| %s | %d | %d | %s | absent | | |\n", case[[1]], r, k, name))
      next
    }
    shares <- gaps <- times <- c()
    for (seed in 1:3) {
      set.seed(seed)
      times <- c(times, sum(system.time(X <- methods[[name]](C, A, r, k))[1:2]))
      X <- sweep(X, 2, sqrt(colSums(X^2)), "/")
      shares <- c(shares, 100 * sum(X * (C %*% X)) / sum(diag(C)))
      gaps <- c(gaps, max(abs(crossprod(X) - diag(r))))
    }
    cat(sprintf("| %s | %d | %d | %s | %.2f (%.2f, %.2f) | %.1e | %.2f |\n", case[[1]], r, k, name,
                median(shares), min(shares), max(shares), max(gaps), median(times)))
  }
}
