package main

import (
	"context"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"pintle.test/client-go/cases"
)

var leaderCases = []cases.Case{
	{Name: "a leader leads over a restart and hands over when it leaves", Run: elected},
}

// candidate runs for the lease until its context ends; the channels tell when it leads and when no longer.
func candidate(ctx context.Context, space, name string) (led, lost <-chan struct{}) {
	leading, ended := make(chan struct{}), make(chan struct{})
	lock := cases.Get(resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, space, "helm",
		resourcelock.ResourceLockConfig{Identity: name}, config(), 5*time.Second))
	elector := cases.Get(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 100 * time.Millisecond,
		ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leading) },
			OnStoppedLeading: func() { close(ended) },
		},
	}))
	go elector.Run(ctx)
	return leading, ended
}

func await(ctx context.Context, what string, told <-chan struct{}) {
	select {
	case <-told:
	case <-ctx.Done():
		panic(what + " did not come about")
	}
}

func elected(ctx context.Context) {
	space := namespace(ctx)
	first, leave := context.WithCancel(ctx)
	defer leave()
	firstLeads, firstLost := candidate(first, space, "first")
	await(ctx, "the first lead", firstLeads)
	secondLeads, _ := candidate(ctx, space, "second")
	cases.Restart()
	held := func() (string, time.Time) {
		lease := cases.Get(typed().CoordinationV1().Leases(space).Get(ctx, "helm", getOptions))
		return *lease.Spec.HolderIdentity, lease.Spec.RenewTime.Time
	}
	_, renewed := held()
	cases.Eventually(ctx, func() string {
		if holder, now := held(); holder != "first" || !now.After(renewed) {
			return holder + " does not renew the lease"
		}
		return ""
	})
	leave()
	await(ctx, "the end of the first lead", firstLost)
	await(ctx, "the second lead", secondLeads)
	holder, _ := held()
	cases.Equal("holder", holder, "second")
}
