// etcd 3.4, for the tests of the etcd engine.
package main

import "go.etcd.io/etcd/etcdmain"

func main() { etcdmain.Main() }
