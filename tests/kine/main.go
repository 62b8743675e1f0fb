// kine with the databases of the tests. Its own program has the drivers of all databases, and with them a NATS server, an S3 client
// and Pebble, which take minutes to compile. The settings are those of that program without flags.
//
// usage: kine DATABASE ADDRESS
package main

import (
	"context"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/generic"
	_ "github.com/k3s-io/kine/pkg/drivers/pgsql"
	_ "github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/k3s-io/kine/pkg/server"
	"google.golang.org/grpc"
)

func main() {
	ctx := context.Background()
	_, backend, err := drivers.New(ctx, &sync.WaitGroup{}, &drivers.Config{
		Endpoint:             os.Args[1],
		ConnectionPoolConfig: generic.ConnectionPoolConfig{MaxIdle: 20, MaxIdleTime: 2 * time.Minute},
		CompactTimeout:       5 * time.Second,
		CompactMinRetain:     1000,
		CompactBatchSize:     1000,
		PollBatchSize:        500,
		PollInterval:         time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := backend.Start(ctx); err != nil {
		log.Fatal(err)
	}
	service := grpc.NewServer(grpc.MaxRecvMsgSize(2 << 20))
	server.New(backend, "http", 5*time.Second, "3.6.11").Register(service)
	listener, err := net.Listen("tcp", os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(service.Serve(listener))
}
