"""A published model as statsmodels would show it: `params`, `bse`, `pvalues`, `conf_int()`.

For code that was written for statsmodels: the names and shapes are its own, the numbers are
`PublishedModel.estimates`, whose errors count the noise of privacy besides the sample.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blurfit.optional import optional

if TYPE_CHECKING:
    from blurfit.model.published import PublishedModel
    from blurfit.model.summary import Summary


@dataclass(frozen=True)
class Results:
    """One output of a model with standard errors, in pandas' own shapes."""

    model: "PublishedModel"
    output: str

    def _series(self, attribute: str) -> Any:
        found = self.model.estimates(output=self.output)
        numbers = [getattr(one, attribute) for one in found]
        return optional("pandas").Series(numbers, [one.name for one in found], name=attribute)

    @property
    def params(self) -> Any:
        """Unbiased coefficients in the user's units, the intercept first."""
        return self._series("value")

    @property
    def bse(self) -> Any:
        """Standard errors: sampling and privacy together."""
        return self._series("standard_error")

    @property
    def tvalues(self) -> Any:
        """Coefficients over their standard errors."""
        return self._series("statistic")

    @property
    def pvalues(self) -> Any:
        """Of the hypothesis that a coefficient is zero, two-sided."""
        return self._series("p_value")

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Lower and upper bounds at confidence 1 − α, in columns 0 and 1."""
        found = self.model.estimates(1 - alpha, self.output)
        bounds = [(one.lower, one.upper) for one in found]
        return optional("pandas").DataFrame(bounds, [one.name for one in found])

    def cov_params(self) -> Any:
        """The covariance of the coefficients: sampling and privacy together."""
        found = self.model.inference_of(self.output)
        return optional("pandas").DataFrame(found.covariance, found.names, found.names)

    @property
    def rsquared(self) -> float:
        """The share of the spread that is explained, noise taken out; nan for a curve."""
        found = self.model.inference_of(self.output).r_squared
        return np.nan if found is None else found

    @property
    def nobs(self) -> int:
        """How many people took part."""
        return self.model.count

    def predict(self, exog: Any) -> Any:
        """What the model predicts for records, with the coefficients shrunk for prediction."""
        return self.model.predict(exog)

    def summary(self, alpha: float = 0.05) -> "Summary":
        """The model's own summary table, at confidence 1 − α."""
        return self.model.summary(1 - alpha)
