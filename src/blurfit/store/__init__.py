"""The database's memory: durable, and one release of each wave.

| module | idea |
| --- | --- |
| `database` | the database under a store: opened so that a commit is on disk, and transactions |
| `tables` | what is in which table, and versions |
| `collections` | courses and waves: states, dates, roles, invitations, and what anyone may know |
| `identifiers`, `blocks` | what was taken, as it came |
| `arrivals` | groups of arrivals, and withdrawals |
| `release` | from wave to wave: fix, learn, keep; exports and signatures |
| `joint` | two databases sum over one set, and why that is safe |
| `outbox` | what is still to be done, or to be told |
| `store` | all of it; tokens and the audit log |
| `backup` | copies, and going on from one without a second release |
| `halves` | do those who came first and later send alike? |
"""

from blurfit.errors import optional

optional("sqlalchemy")  # or an error that names the extra, at the door rather than in a room
