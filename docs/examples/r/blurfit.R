# Read what blurfit publishes, in plain R: a model is like one of lm, the moments have least squares.
#   source("blurfit.R"); fit <- read_model("model.json")
#   summary(fit); coef(fit); vcov(fit); confint(fit); predict(fit, people, interval = "confidence")
# Rscript blurfit.R model.json people.csv             predictions, one a line
# Rscript blurfit.R moments.json income age,education  coefficients of a linear model, not shrunk
# Needs jsonlite. Everything here follows from a published file, so it costs no privacy.

library(jsonlite)

read_published <- function(path) fromJSON(path, simplifyVector = FALSE)

# ---- what coefficients multiply, in the units of the survey: numbers are clipped to their public
# bounds, a level counts 1 or 0, yes counts 1 and no 0; what is derived follows from these.

questions_of <- function(model) {
  schema <- model$agreement$schema
  found <- c(schema$sources, schema$features, list(schema$target))
  names(found) <- sapply(found, function(one) one$name)
  found
}

clipped <- function(one, rows) {
  value <- as.numeric(rows[[one$name]])
  if (one$kind == "numeric") pmin(pmax(value, one$lower), one$upper) else value
}

scaled <- function(one, rows) {
  value <- clipped(one, rows)
  if (one$kind == "numeric") 2 * (value - one$lower) / (one$upper - one$lower) - 1 else 2 * value - 1
}

answers_of <- function(one) if (one$kind == "categorical") unlist(one$levels) else c("yes", "no")

# 1 for the level that a row has, a column for each
indicators <- function(one, rows) {
  given <- if (one$kind == "categorical") as.character(rows[[one$name]])
           else ifelse(as.numeric(rows[[one$name]]) > 0, "yes", "no")
  sapply(answers_of(one), function(level) as.numeric(given == level))
}

hats <- function(knots, value) {
  value <- pmin(pmax(value, knots[1]), knots[length(knots)])
  sapply(seq_along(knots), function(j) {
    rising <- if (j > 1) (value - knots[j - 1]) / (knots[j] - knots[j - 1]) else rep(1, length(value))
    falling <- if (j < length(knots)) (knots[j + 1] - value) / (knots[j + 1] - knots[j])
               else rep(1, length(value))
    pmax(0, pmin(rising, falling, 1))
  })
}

legendre <- function(degree, z) {
  before <- rep(1, length(z)); found <- z
  for (k in seq_len(degree - 1)) {
    after <- ((2 * k + 1) * z * found - k * before) / (k + 1)
    before <- found; found <- after
  }
  found
}

# The columns of one feature, in the order of its names in model$columns.
feature_columns <- function(model, name, rows) {
  questions <- questions_of(model)
  one <- questions[[name]]
  of <- unlist(one$of)
  source <- function(place) questions[[of[place]]]
  told <- all(of %in% unlist(model$features))  # a product beside its questions is in their units
  value <- function(place) if (told) clipped(source(place), rows) else scaled(source(place), rows)
  columns <- switch(one$kind,
    categorical = indicators(one, rows),
    bands = sapply(0:length(one$edges), function(j)
      as.numeric(findInterval(clipped(source(1), rows), unlist(one$edges)) == j)),
    curve = hats(unlist(one$knots), clipped(source(1), rows)),
    poly = legendre(one$degree, scaled(source(1), rows)),
    condition = if (is.null(one$level)) as.numeric(clipped(source(1), rows) > one$above)
                else as.numeric(rows[[of]] == one$level),
    cross = {
      first <- matrix(indicators(source(1), rows), nrow(rows))
      last <- matrix(indicators(source(2), rows), nrow(rows))
      do.call(cbind, lapply(seq_len(ncol(first)), function(j) first[, j] * last))
    },
    product = {
      choice <- which(sapply(1:2, function(j) source(j)$kind == "categorical"))
      if (length(choice)) matrix(indicators(source(choice), rows), nrow(rows)) * value(3 - choice)
      else value(1) * value(2)
    },
    clipped(one, rows))
  columns <- matrix(columns, nrow(rows))
  all <- unlist(model$columns)
  colnames(columns) <- if (ncol(columns) == 1 && name %in% all) name
                       else all[startsWith(all, paste0(name, "="))]
  columns
}

design <- function(model, rows, names) {
  every <- do.call(cbind, c(list("(intercept)" = matrix(1, nrow(rows), 1, dimnames = list(NULL,
    "(intercept)"))), lapply(unlist(model$features), function(name) feature_columns(model, name, rows))))
  every[, names, drop = FALSE]
}

bent <- function(link, score) {
  switch(link, linear = score, logistic = 1 / (1 + exp(-score)), log = exp(score))
}

predict_published <- function(model, rows, output = names(model$coefficients)[1]) {
  effects <- unlist(model$coefficients[[output]])
  found <- bent(model$link, drop(design(model, rows, names(effects)) %*% effects))
  if (length(model$curve)) # of a label's line: the log-odds of its score, which is twice as steep
    found <- bent("logistic", model$curve[[1]] + model$curve[[2]] * (2 * found - 1))
  aim <- questions_of(model)[[model$target]]
  # everybody's number is within its bounds, but a question of yes or no has a score
  if (aim$kind == "numeric" && is.null(aim$above)) pmin(pmax(found, aim$lower), aim$upper) else found
}

# ---- a model with its errors, which count the noise of privacy, like one of lm or glm

read_model <- function(path, output = NULL) {
  model <- read_published(path)
  place <- if (is.null(output)) 1 else which(names(model$weights) == output)
  if (length(model$inference) < place) stop(model$refusal)
  found <- model$inference[[place]]
  names <- unlist(found$names)
  square <- function(part) matrix(unlist(part), length(names), dimnames = list(names, names))
  structure(list(
    coefficients = setNames(unlist(found$coefficients), names),
    sampling = square(found$sampling), privacy = square(found$privacy),
    sigma = if (is.null(found$residual_variance)) NA else sqrt(found$residual_variance),
    r.squared = if (is.null(found$r_squared)) NA else found$r_squared,
    nobs = found$count, df.residual = found$count - length(names),
    formula = paste(model$target, "~", paste(unlist(model$features), collapse = " + ")),
    published = model), class = "blurfit")
}

coef.blurfit <- function(object, ...) object$coefficients
vcov.blurfit <- function(object, ...) object$sampling + object$privacy
nobs.blurfit <- function(object, ...) object$nobs
df.residual.blurfit <- function(object, ...) object$df.residual
sigma.blurfit <- function(object, ...) object$sigma
formula.blurfit <- function(x, ...) stats::formula(x$formula)

confint.blurfit <- function(object, parm = names(coef(object)), level = 0.95, ...) {
  reach <- qt((1 + level) / 2, object$df.residual) * sqrt(diag(vcov(object)))
  found <- cbind(coef(object) - reach, coef(object) + reach)
  colnames(found) <- paste(format(100 * c((1 - level) / 2, (1 + level) / 2)), "%")
  found[parm, , drop = FALSE]
}

summary.blurfit <- function(object, ...) {
  error <- sqrt(diag(vcov(object)))
  z <- coef(object) / error
  table <- cbind(Estimate = coef(object), "Std. Error" = error,
                 "of it privacy" = sqrt(diag(object$privacy)), "t value" = z,
                 "Pr(>|t|)" = 2 * pt(-abs(z), object$df.residual))
  structure(list(formula = object$formula, coefficients = table, sigma = object$sigma,
                 r.squared = object$r.squared, df = object$df.residual), class = "summary.blurfit")
}

print.blurfit <- function(x, ...) { cat(x$formula, "\n"); print(coef(x), ...); invisible(x) }
print.summary.blurfit <- function(x, ...) {
  cat(x$formula, "\n\n")
  printCoefmat(x$coefficients, tst.ind = 4, cs.ind = 1:3, has.Pvalue = TRUE)
  cat(sprintf("\nResidual standard error: %.4g on %d degrees of freedom, R-squared: %.3f\n",
              x$sigma, x$df, x$r.squared))
  invisible(x)
}

predict.blurfit <- function(object, newdata, se.fit = FALSE,
                            interval = c("none", "confidence", "prediction"), level = 0.95, ...) {
  interval <- match.arg(interval)
  x <- design(object$published, newdata, names(coef(object)))
  link <- object$published$link
  fit <- drop(x %*% coef(object))
  error <- sqrt(rowSums((x %*% vcov(object)) * x))
  spread <- if (interval == "prediction") sqrt(error^2 + object$sigma^2) else error
  reach <- qt((1 + level) / 2, object$df.residual) * spread
  found <- if (interval == "none") bent(link, fit)
           else cbind(fit = bent(link, fit), lwr = bent(link, fit - reach), upr = bent(link, fit + reach))
  if (se.fit) list(fit = found, se.fit = error, df = object$df.residual) else found
}

# ---- moments

# The blurred mean of v v', v = (1, columns on [-1, 1]), from the sums of z = (c, weight * v).
second_moments <- function(moments) {
  columns <- unique(unlist(strsplit(unlist(moments$products), "·", fixed = TRUE)))
  weights <- sapply(columns, function(name) {
    listed <- moments$agreement$weights
    question <- sub("=.*$", "", name)
    if (name == "1") listed[["(intercept)"]]
    else if (name %in% names(listed)) listed[[name]]
    else listed[[question]]
  })
  found <- diag(length(columns))  # what nobody sends: 1, and the squares of yes/no, which are 1
  dimnames(found) <- list(columns, columns)
  for (place in seq_along(moments$products)) {
    pair <- strsplit(moments$products[[place]], "·", fixed = TRUE)[[1]]
    value <- moments$sums[[place]] / (moments$count * weights[[pair[1]]] * weights[[pair[2]]])
    found[pair[1], pair[2]] <- found[pair[2], pair[1]] <- value
  }
  found
}

# Least squares of one number by others, back in the units of the survey.
fit_moments <- function(moments, target, features) {
  found <- second_moments(moments)
  known <- c("1", features)
  weights <- solve(found[known, known], found[known, target])
  questions <- c(moments$agreement$schema$features, list(moments$agreement$schema$target))
  names(questions) <- sapply(questions, function(one) one$name)
  slope <- function(name) 2 / (questions[[name]]$upper - questions[[name]]$lower)
  middle <- function(name) (questions[[name]]$upper + questions[[name]]$lower) / 2
  effects <- sapply(features, function(name) weights[[name]] * slope(name) / slope(target))
  moved <- sum(sapply(features, function(name) effects[[name]] * middle(name)))
  c("(intercept)" = middle(target) + weights[["1"]] / slope(target) - moved, effects)
}

if (!interactive() && sys.nframe() == 0) {
  typed <- commandArgs(trailingOnly = TRUE)
  published <- read_published(typed[1])
  if (published$format == "blurfit-model") {
    rows <- read.csv(typed[2], check.names = FALSE)
    cat(format(predict_published(published, rows), digits = 15), sep = "\n")
  } else {
    found <- fit_moments(published, typed[2], strsplit(typed[3], ",", fixed = TRUE)[[1]])
    cat(paste(names(found), format(found, digits = 15)), sep = "\n")
  }
}
