// etcd, for the tests of the etcd engine: the server's module has no main package that can be built on its own.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
