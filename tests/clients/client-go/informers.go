package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"pintle.test/client-go/cases"
)

var informerCases = []cases.Case{
	{Name: "an informer with WatchList survives a restart of the server", Run: func(ctx context.Context) { survive(ctx, true, cases.Restart) }},
	{Name: "an informer with WatchList survives a crash of the server", Run: func(ctx context.Context) { survive(ctx, true, cases.Kill) }},
	{Name: "an informer without WatchList survives a restart of the server", Run: func(ctx context.Context) { survive(ctx, false, cases.Restart) }},
	{Name: "an informer without WatchList survives a crash of the server", Run: func(ctx context.Context) { survive(ctx, false, cases.Kill) }},
	{Name: "a typed protobuf informer selects by label", Run: labelSelector},
	{Name: "dynamic and metadata informers agree", Run: metadataInformers},
}

// gates are client-go's feature gates, with WatchListClient set to watchList.
type gates struct {
	features.Gates
	watchList bool
}

func (g gates) Enabled(key features.Feature) bool {
	if key == features.WatchListClient {
		return g.watchList
	}
	return g.Gates.Enabled(key)
}

var defaults = features.FeatureGates()

// countingTransport counts lists and watches with sendInitialEvents.
type countingTransport struct {
	inner      http.RoundTripper
	lock       sync.Mutex
	lists      int
	watchLists int
}

func (t *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	t.lock.Lock()
	if query.Get("watch") == "" {
		t.lists++
	} else if query.Get("sendInitialEvents") == "true" {
		t.watchLists++
	}
	t.lock.Unlock()
	return t.inner.RoundTrip(request)
}

// fullLists returns how often the whole list was requested, by a list or by a watch.
func (t *countingTransport) fullLists() int {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.lists + t.watchLists
}

// eventCounter is an event handler that counts its calls by kind of event and name of the object.
type eventCounter struct {
	lock   sync.Mutex
	counts map[string]int
}

func newEventCounter() *eventCounter { return &eventCounter{counts: map[string]int{}} }

func (c *eventCounter) OnAdd(object any, _ bool) { c.count("added", object) }
func (c *eventCounter) OnDelete(object any)      { c.count("deleted", object) }

// OnUpdate leaves out objects that did not change: an informer that lists again reports them as updated.
func (c *eventCounter) OnUpdate(old, object any) {
	if old.(metav1.Object).GetResourceVersion() != object.(metav1.Object).GetResourceVersion() {
		c.count("updated", object)
	}
}

func (c *eventCounter) count(event string, object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.counts[event+" "+object.(metav1.Object).GetName()]++
}

// expect waits until the counts are as wanted.
func (c *eventCounter) expect(ctx context.Context, want map[string]int) {
	cases.Eventually(ctx, func() string {
		c.lock.Lock()
		defer c.lock.Unlock()
		if fmt.Sprint(c.counts) == fmt.Sprint(want) {
			return ""
		}
		return fmt.Sprintf("events %v, want %v", c.counts, want)
	})
}

// survive checks that an informer receives each change once, before and after an interruption of the server.
func survive(ctx context.Context, watchList bool, interrupt func()) {
	features.ReplaceFeatureGates(gates{defaults, watchList})
	defer features.ReplaceFeatureGates(defaults)
	ns, informerConfig, handler := newNamespace(ctx), config(), newEventCounter()
	transport := &countingTransport{}
	informerConfig.Wrap(func(inner http.RoundTripper) http.RoundTripper { transport.inner = inner; return transport })
	client := dynamicClient().Resource(boats).Namespace(ns)
	cases.Must(client.Create(ctx, newBoat("early", 1), metav1.CreateOptions{}))
	cases.Must(client.Create(ctx, newBoat("leaving", 1), metav1.CreateOptions{}))

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(cases.Must(dynamic.NewForConfig(informerConfig)), 0, ns, nil)
	informer := factory.ForResource(boats)
	cases.Must(informer.Informer().AddEventHandler(handler))
	informerContext, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(informerContext.Done())
	cases.True(cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced), "the informer has not synced")
	handler.expect(ctx, map[string]int{"added early": 1, "added leaving": 1})
	transport.lock.Lock()
	lists, watchLists := transport.lists, transport.watchLists
	transport.lock.Unlock()
	if watchList {
		cases.Equal("lists and watch lists", []int{lists, watchLists}, []int{0, 1})
	} else {
		cases.Equal("lists and watch lists", []int{lists, watchLists}, []int{1, 0})
	}

	interrupt()
	cases.NoError(client.Delete(ctx, "leaving", metav1.DeleteOptions{}))
	cases.Must(client.Create(ctx, newBoat("late", 1), metav1.CreateOptions{}))
	cases.Must(client.Patch(ctx, "early", types.MergePatchType, []byte(`{"spec":{"sails":2}}`), metav1.PatchOptions{}))
	handler.expect(ctx, map[string]int{"added early": 1, "added leaving": 1, "deleted leaving": 1, "added late": 1, "updated early": 1})
	cases.Equal("cached", len(cases.Must(informer.Lister().ByNamespace(ns).List(labels.Everything()))), 2)
}

func labelSelector(ctx context.Context) {
	ns, handler := newNamespace(ctx), newEventCounter()
	client := clientFor(protobuf)
	factory := informers.NewSharedInformerFactoryWithOptions(client, time.Hour, informers.WithNamespace(ns),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "colour=red" }))
	informer := factory.Core().V1().ConfigMaps()
	cases.Must(informer.Informer().AddEventHandler(handler))
	informerContext, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(informerContext.Done())
	cases.True(cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced), "the informer has not synced")
	configMaps := client.CoreV1().ConfigMaps(ns)
	for _, colour := range []string{"red", "blue"} {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: colour, Labels: map[string]string{"colour": colour}}}
		cases.Must(configMaps.Create(ctx, configMap, metav1.CreateOptions{}))
	}
	relabel := func(name, colour string) {
		cases.Must(configMaps.Patch(ctx, name, types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"colour":"`+colour+`"}}}`), metav1.PatchOptions{}))
	}
	relabel("red", "green")
	relabel("blue", "red")
	handler.expect(ctx, map[string]int{"added red": 1, "deleted red": 1, "added blue": 1})
}

func metadataInformers(ctx context.Context) {
	ns := newNamespace(ctx)
	client := dynamicClient()
	dynamicFactory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, ns, nil)
	metadataFactory := metadatainformer.NewFilteredSharedInformerFactory(cases.Must(metadata.NewForConfig(config())), 0, ns, nil)
	informerContext, stop := context.WithCancel(ctx)
	defer stop()
	handlers := []*eventCounter{newEventCounter(), newEventCounter()}
	cases.Must(dynamicFactory.ForResource(boats).Informer().AddEventHandler(handlers[0]))
	cases.Must(metadataFactory.ForResource(boats).Informer().AddEventHandler(handlers[1]))
	dynamicFactory.Start(informerContext.Done())
	metadataFactory.Start(informerContext.Done())
	cases.True(cache.WaitForCacheSync(ctx.Done(), dynamicFactory.ForResource(boats).Informer().HasSynced, metadataFactory.ForResource(boats).Informer().HasSynced), "the informer has not synced")
	cases.Must(client.Resource(boats).Namespace(ns).Create(ctx, newBoat("anna", 1), metav1.CreateOptions{}))
	cases.NoError(client.Resource(boats).Namespace(ns).Delete(ctx, "anna", metav1.DeleteOptions{}))
	for _, handler := range handlers {
		handler.expect(ctx, map[string]int{"added anna": 1, "deleted anna": 1})
	}
}
