// Copyright (c) jupyter-pause contributors.
// Distributed under the terms of the Apache License 2.0.

// Command etcd is etcd's own server, built from its module: the store behind the tests' kube-apiserver.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
