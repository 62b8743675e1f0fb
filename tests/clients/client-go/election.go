package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"pintle.test/client-go/cases"
)

var leaderCases = []cases.Case{
	{Name: "a leader keeps its lease across a restart of the server and releases it when it stops", Run: leaderElection},
}

// candidate competes for the lease until its context ends. The channels are closed when it starts and when it stops leading.
func candidate(ctx context.Context, ns, name string) (started, stopped <-chan struct{}) {
	leading, lost := make(chan struct{}), make(chan struct{})
	lock := cases.Must(resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, ns, "helm",
		resourcelock.ResourceLockConfig{Identity: name}, config(), 5*time.Second))
	elector := cases.Must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 100 * time.Millisecond,
		ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leading) },
			OnStoppedLeading: func() { close(lost) },
		},
	}))
	go elector.Run(ctx)
	return leading, lost
}

func await(ctx context.Context, what string, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
		panic("timeout: " + what)
	}
}

func leaderElection(ctx context.Context) {
	ns := newNamespace(ctx)
	firstContext, stopFirst := context.WithCancel(ctx)
	defer stopFirst()
	firstLeads, firstLost := candidate(firstContext, ns, "first")
	await(ctx, "the first candidate does not lead", firstLeads)
	secondLeads, _ := candidate(ctx, ns, "second")
	cases.Restart()
	holderAndRenewal := func() (string, time.Time) {
		lease := cases.Must(typedClient().CoordinationV1().Leases(ns).Get(ctx, "helm", metav1.GetOptions{}))
		return *lease.Spec.HolderIdentity, lease.Spec.RenewTime.Time
	}
	_, renewed := holderAndRenewal()
	cases.Eventually(ctx, func() string {
		if holder, now := holderAndRenewal(); holder != "first" || !now.After(renewed) {
			return holder + " does not renew the lease"
		}
		return ""
	})
	stopFirst()
	await(ctx, "the first candidate does not stop leading", firstLost)
	await(ctx, "the second candidate does not lead", secondLeads)
	holder, _ := holderAndRenewal()
	cases.Equal("holder", holder, "second")
}
