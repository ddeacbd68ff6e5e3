# Read what blurfit publishes, in plain R: the model predicts, the moments have means and least squares.
# Rscript blurfit.R model.json people.csv             predictions, one a line
# Rscript blurfit.R moments.json income age,education  coefficients of a linear model, not shrunk
# Needs jsonlite. Everything here follows from a published file, so it costs no privacy.

library(jsonlite)

read_published <- function(path) fromJSON(path, simplifyVector = FALSE)

# intercept + sum of effect * value, in the units of the survey: numbers are clipped to their public
# bounds, a level counts 1 or 0 ("region=north"), yes counts 1 and no 0.
predict_published <- function(model, rows, output = names(model$coefficients)[1]) {
  effects <- model$coefficients[[output]]
  questions <- model$agreement$schema$features
  target <- model$agreement$schema$target
  questions[[length(questions) + 1]] <- target
  names(questions) <- sapply(questions, function(one) one$name)
  score <- rep(effects[["(intercept)"]], nrow(rows))
  for (name in setdiff(names(effects), "(intercept)")) {
    place <- regexpr("=", name, fixed = TRUE)
    if (name %in% names(questions)) {
      one <- questions[[name]]
      value <- as.numeric(rows[[name]])
      if (one$kind == "numeric") value <- pmin(pmax(value, one$lower), one$upper)
    } else {
      value <- as.numeric(rows[[substr(name, 1, place - 1)]] == substring(name, place + 1))
    }
    score <- score + effects[[name]] * value
  }
  switch(model$link, linear = score, logistic = 1 / (1 + exp(-score)), log = exp(score))
}

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

if (!interactive()) {
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
