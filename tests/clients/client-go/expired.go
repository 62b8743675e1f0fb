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
	{Name: "an informer with WatchList relists after its watch has expired", Run: func(ctx context.Context) { watchExpired(ctx, true) }},
	{Name: "an informer without WatchList relists after its watch has expired", Run: func(ctx context.Context) { watchExpired(ctx, false) }},
}

// gatedTransport delays the events of watches while its gate is locked.
type gatedTransport struct {
	countingTransport
	gate sync.RWMutex
}

func (t *gatedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.countingTransport.RoundTrip(request)
	if err == nil && request.URL.Query().Get("watch") != "" {
		response.Body = &gatedBody{response.Body, &t.gate}
	}
	return response, err
}

// gatedBody returns what it has read once the gate is unlocked.
type gatedBody struct {
	io.ReadCloser
	gate *sync.RWMutex
}

func (b *gatedBody) Read(into []byte) (int, error) {
	read, err := b.ReadCloser.Read(into)
	b.gate.RLock()
	defer b.gate.RUnlock()
	return read, err
}

// flood writes more history than the server keeps: it creates and deletes 540 ConfigMaps.
func flood(ctx context.Context, ns string) {
	client := clientFor("application/json").CoreV1().ConfigMaps(ns)
	data := map[string]string{"key": strings.Repeat("x", 95_000)}
	failures := make(chan error, 6)
	for worker := range 6 {
		go func() {
			var failure error
			for number := 0; number < 90 && failure == nil; number++ {
				name := fmt.Sprintf("flood-%d-%d", worker, number)
				configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"flood": ""}}, Data: data}
				_, failure = client.Create(ctx, configMap, metav1.CreateOptions{})
			}
			failures <- failure
		}()
	}
	for range 6 {
		cases.NoError(<-failures)
	}
	cases.NoError(client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "flood"}))
}

func watchExpired(ctx context.Context, watchList bool) {
	features.ReplaceFeatureGates(gates{defaults, watchList})
	defer features.ReplaceFeatureGates(defaults)
	ns, informerConfig, transport := newNamespace(ctx), config(), &gatedTransport{}
	informerConfig.Wrap(func(inner http.RoundTripper) http.RoundTripper { transport.inner = inner; return transport })
	configMaps := typedClient().CoreV1().ConfigMaps(ns)
	newConfigMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	early := cases.Must(configMaps.Create(ctx, newConfigMap("early"), metav1.CreateOptions{}))
	cases.Must(configMaps.Create(ctx, newConfigMap("leaving"), metav1.CreateOptions{}))

	client := cases.Must(kubernetes.NewForConfig(informerConfig))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
	informer, handler := factory.Core().V1().ConfigMaps(), newEventCounter()
	cases.Must(informer.Informer().AddEventHandler(handler))
	informerContext, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(informerContext.Done())
	cases.True(cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced), "the informer has not synced")
	listsBefore := transport.fullLists()

	transport.gate.Lock()
	cases.NoError(configMaps.Delete(ctx, "leaving", metav1.DeleteOptions{}))
	flood(ctx, ns)
	cases.Must(configMaps.Create(ctx, newConfigMap("late"), metav1.CreateOptions{}))
	transport.gate.Unlock()
	// The informer's store changes before its handlers are called, in goroutines of their own.
	cases.Eventually(ctx, func() string {
		cached := cases.Must(informer.Lister().ConfigMaps(ns).List(labels.Everything()))
		handler.lock.Lock()
		defer handler.lock.Unlock()
		lists, added, deleted := transport.fullLists()-listsBefore, handler.counts["added late"], handler.counts["deleted leaving"]
		if len(cached) != 2 || lists == 0 || added == 0 || deleted == 0 {
			return fmt.Sprintf("%d cached objects, %d additions and %d deletions after %d more lists", len(cached), added, deleted, lists)
		}
		return ""
	})
	handler.lock.Lock()
	defer handler.lock.Unlock()
	cases.Equal("handled", []int{handler.counts["added late"], handler.counts["deleted leaving"], handler.counts["deleted early"]}, []int{1, 1, 0})

	watcher := cases.Must(configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: early.ResourceVersion}))
	defer watcher.Stop()
	err := apierrors.FromObject(nextEvent(ctx, watcher, watch.Error).Object)
	cases.True(apierrors.IsResourceExpired(err), "a watch from an old resourceVersion: %v", err)
}
