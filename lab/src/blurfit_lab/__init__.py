"""The laboratory of blurfit: what the product is compared with, and how.

    rivals        other differentially private estimators, each with what it promises
    datasets      real data sets, read from files
    audit         attacks on guarantees: lower bounds of ε, with confidence
    experiments   the paper's figures and claims; defaults on many populations; coverage; errata

The product never imports it, and nothing here touches a record that somebody contributed.
"""

from blurfit.errors import require_version
from blurfit_lab.version import __version__ as __version__

require_version("blurfit-lab", __version__)
