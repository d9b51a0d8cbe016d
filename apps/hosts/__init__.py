"""What the server knows of hosts: registry, devices, jobs as a queue, reports taken in, lost ones found."""
