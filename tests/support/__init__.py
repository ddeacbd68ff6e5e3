"""What tests of several rooms share.

Whoever runs several tests at a time has the processors busy: a second thread of BLAS would do
nothing there but wait for its turn, spinning, many times as long as a product of matrices takes.
BLAS and OpenMP read that when they are first imported, so it is said here, where `conftest.py`
comes by before anything else; processes that tests start inherit it.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
