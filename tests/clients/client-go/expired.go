package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"pintle.test/client-go/cases"
)

var expiredCases = []cases.Case{
	{Name: "an informer with WatchList lists anew when its watch has expired", Run: func(ctx context.Context) { expired(ctx, true) }},
	{Name: "an informer without WatchList lists anew when its watch has expired", Run: func(ctx context.Context) { expired(ctx, false) }},
}

// valve lets nothing of a watch through while it is held.
type valve struct {
	spy
	gate sync.RWMutex
}

func (v *valve) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := v.spy.RoundTrip(request)
	if err == nil && request.URL.Query().Get("watch") != "" {
		response.Body = &held{response.Body, &v.gate}
	}
	return response, err
}

type held struct {
	io.ReadCloser
	gate *sync.RWMutex
}

func (h *held) Read(into []byte) (int, error) {
	read, err := h.ReadCloser.Read(into)
	h.gate.RLock()
	defer h.gate.RUnlock()
	return read, err
}

// flood makes more history than the server keeps: 540 config maps that come and go.
func flood(ctx context.Context, space string) {
	client := speaking("application/json").CoreV1().ConfigMaps(space)
	data := map[string]string{"key": strings.Repeat("x", 95_000)}
	failures := make(chan error, 6)
	for worker := range 6 {
		go func() {
			var failure error
			for number := 0; number < 90 && failure == nil; number++ {
				name := fmt.Sprintf("flood-%d-%d", worker, number)
				asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"flood": ""}}, Data: data}
				_, failure = client.Create(ctx, asked, metav1.CreateOptions{})
			}
			failures <- failure
		}()
	}
	for range 6 {
		cases.Must(<-failures)
	}
	cases.Must(client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "flood"}))
}

func expired(ctx context.Context, watchList bool) {
	features.ReplaceFeatureGates(gates{defaults, watchList})
	defer features.ReplaceFeatureGates(defaults)
	space, watched, between := namespace(ctx), config(), &valve{}
	watched.Wrap(func(inner http.RoundTripper) http.RoundTripper { between.inner = inner; return between })
	maps := typed().CoreV1().ConfigMaps(space)
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	early := cases.Get(maps.Create(ctx, named("early"), metav1.CreateOptions{}))
	cases.Get(maps.Create(ctx, named("leaving"), metav1.CreateOptions{}))

	client := cases.Get(kubernetes.NewForConfig(watched))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(space))
	informer, ears := factory.Core().V1().ConfigMaps(), &seen{counts: map[string]int{}}
	cases.Get(informer.Informer().AddEventHandler(ears))
	inner, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(inner.Done())
	cases.That(cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced), "no sync")
	before := between.starts()

	between.gate.Lock()
	cases.Must(maps.Delete(ctx, "leaving", metav1.DeleteOptions{}))
	flood(ctx, space)
	cases.Get(maps.Create(ctx, named("late"), metav1.CreateOptions{}))
	between.gate.Unlock()
	// The informer's store changes before its handlers are called, in goroutines of their own.
	cases.Eventually(ctx, func() string {
		found := cases.Get(informer.Lister().ConfigMaps(space).List(labels.Everything()))
		ears.lock.Lock()
		defer ears.lock.Unlock()
		lists, added, deleted := between.starts()-before, ears.counts["added late"], ears.counts["deleted leaving"]
		if len(found) != 2 || lists == 0 || added == 0 || deleted == 0 {
			return fmt.Sprintf("%d objects, %d additions and %d deletions after %d lists more", len(found), added, deleted, lists)
		}
		return ""
	})
	ears.lock.Lock()
	defer ears.lock.Unlock()
	cases.Equal("handled", []int{ears.counts["added late"], ears.counts["deleted leaving"], ears.counts["deleted early"]}, []int{1, 1, 0})

	watching := cases.Get(maps.Watch(ctx, metav1.ListOptions{ResourceVersion: early.ResourceVersion}))
	defer watching.Stop()
	refused := apierrors.FromObject(next(ctx, watching, watch.Error).Object)
	cases.That(apierrors.IsResourceExpired(refused), "a watch from long ago: %v", refused)
}
