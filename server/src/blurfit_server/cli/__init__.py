"""The commands that this distribution adds to `blurfit`, listed as `blurfit.cli` lists its own."""

TABLE = """
serve: Run a database
  serve       Collect submissions over HTTP, lose nothing, publish once.
  token       Grant or revoke a token for one kind of task; without options, list all tokens.
  deeds       List what administrators did, newest first: when, who, what, and the outcome.
  backup      Copy a store while it is in use, as of one moment, and check the copy.
  restore     Restore a store from a backup FILE, so that nothing can be published a second time.
  export      Write the submissions of a closed collection to a file, for `blurfit learn`.
  quickstart  Run two databases and a survey on this machine: take part, and read the model.
  demo        Let generated people share answers between two databases, and get a model.
administer: Collect
  open        Start collecting under an AGREEMENT, or under a plan of waves.
  invite      Make one-time invitations for a collection or a plan, one for each person.
  status      Tell how many have contributed under an AGREEMENT, or to each wave of a plan.
  until       Move the DATE at which a collection or a plan closes by itself.
  hold        Release no wave of a PLAN until it is resumed; the open wave goes on collecting.
  pause       Take no submissions under an AGREEMENT or a plan until it is resumed.
  resume      Resume what was paused, or a plan that was held.
  close       Stop collecting, without publishing anything yet.
  publish     Close the collection, learn its model and publish it.
"""
