"""Problems, runs, versions, the event log, and the pages, sockets, API and tasks over them."""
