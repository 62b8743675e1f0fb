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
	{Name: "an informer with WatchList lives over a restart", Run: func(ctx context.Context) { informed(ctx, true, cases.Restart) }},
	{Name: "an informer with WatchList lives over a crash", Run: func(ctx context.Context) { informed(ctx, true, cases.Kill) }},
	{Name: "an informer without WatchList lives over a restart", Run: func(ctx context.Context) { informed(ctx, false, cases.Restart) }},
	{Name: "an informer without WatchList lives over a crash", Run: func(ctx context.Context) { informed(ctx, false, cases.Kill) }},
	{Name: "a typed informer in protobuf selects by label", Run: selected},
	{Name: "dynamic and metadata informers agree", Run: agreed},
}

// gates are client-go's own, one of them decided here.
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

// spy remembers the queries of requests.
type spy struct {
	inner http.RoundTripper
	lock  sync.Mutex
	lists int
	first int
}

func (s *spy) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	s.lock.Lock()
	if query.Get("watch") == "" {
		s.lists++
	} else if query.Get("sendInitialEvents") == "true" {
		s.first++
	}
	s.lock.Unlock()
	return s.inner.RoundTrip(request)
}

// starts is how often the state was asked for, in one way or the other.
func (s *spy) starts() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.lists + s.first
}

// seen counts what a handler was told of each name.
type seen struct {
	lock   sync.Mutex
	counts map[string]int
}

func (s *seen) OnAdd(object any, _ bool) { s.add("added", object) }
func (s *seen) OnUpdate(_, object any)   { s.add("updated", object) }
func (s *seen) OnDelete(object any)      { s.add("deleted", object) }
func (s *seen) add(what string, object any) {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		object = unknown.Obj
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.counts[what+" "+object.(metav1.Object).GetName()]++
}

func (s *seen) expect(ctx context.Context, want map[string]int) {
	cases.Eventually(ctx, func() string {
		s.lock.Lock()
		defer s.lock.Unlock()
		if fmt.Sprint(s.counts) == fmt.Sprint(want) {
			return ""
		}
		return fmt.Sprintf("told %v, not %v", s.counts, want)
	})
}

func informed(ctx context.Context, watchList bool, end func()) {
	features.ReplaceFeatureGates(gates{defaults, watchList})
	defer features.ReplaceFeatureGates(defaults)
	space, watched, ears := namespace(ctx), config(), &seen{counts: map[string]int{}}
	listener := &spy{}
	watched.Wrap(func(inner http.RoundTripper) http.RoundTripper { listener.inner = inner; return listener })
	client := dynamics().Resource(boats).Namespace(space)
	cases.Get(client.Create(ctx, newBoat("early", 1), metav1.CreateOptions{}))
	cases.Get(client.Create(ctx, newBoat("leaving", 1), metav1.CreateOptions{}))

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(cases.Get(dynamic.NewForConfig(watched)), 0, space, nil)
	informer := factory.ForResource(boats)
	cases.Get(informer.Informer().AddEventHandler(ears))
	inner, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(inner.Done())
	cases.That(cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced), "no sync")
	ears.expect(ctx, map[string]int{"added early": 1, "added leaving": 1})
	listener.lock.Lock()
	lists, first := listener.lists, listener.first
	listener.lock.Unlock()
	if watchList {
		cases.Equal("lists and streamed lists", []int{lists, first}, []int{0, 1})
	} else {
		cases.Equal("lists and streamed lists", []int{lists, first}, []int{1, 0})
	}

	end()
	cases.Must(client.Delete(ctx, "leaving", metav1.DeleteOptions{}))
	cases.Get(client.Create(ctx, newBoat("late", 1), metav1.CreateOptions{}))
	cases.Get(client.Patch(ctx, "early", types.MergePatchType, []byte(`{"spec":{"sails":2}}`), metav1.PatchOptions{}))
	ears.expect(ctx, map[string]int{"added early": 1, "added leaving": 1, "deleted leaving": 1, "added late": 1, "updated early": 1})
	cases.Equal("cached", len(cases.Get(informer.Lister().ByNamespace(space).List(labels.Everything()))), 2)
}

func selected(ctx context.Context) {
	space, ears := namespace(ctx), &seen{counts: map[string]int{}}
	client := speaking(protobuf)
	factory := informers.NewSharedInformerFactoryWithOptions(client, time.Hour, informers.WithNamespace(space),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "colour=red" }))
	informer := factory.Core().V1().ConfigMaps()
	cases.Get(informer.Informer().AddEventHandler(ears))
	inner, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(inner.Done())
	cases.That(cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced), "no sync")
	maps := client.CoreV1().ConfigMaps(space)
	for _, colour := range []string{"red", "blue"} {
		asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: colour, Labels: map[string]string{"colour": colour}}}
		cases.Get(maps.Create(ctx, asked, metav1.CreateOptions{}))
	}
	paint := func(name, colour string) {
		cases.Get(maps.Patch(ctx, name, types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"colour":"`+colour+`"}}}`), metav1.PatchOptions{}))
	}
	paint("red", "green")
	paint("blue", "red")
	ears.expect(ctx, map[string]int{"added red": 1, "deleted red": 1, "added blue": 1})
}

func agreed(ctx context.Context) {
	space := namespace(ctx)
	client := dynamics()
	wide := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, space, nil)
	narrow := metadatainformer.NewFilteredSharedInformerFactory(cases.Get(metadata.NewForConfig(config())), 0, space, nil)
	inner, stop := context.WithCancel(ctx)
	defer stop()
	ears := []*seen{{counts: map[string]int{}}, {counts: map[string]int{}}}
	cases.Get(wide.ForResource(boats).Informer().AddEventHandler(ears[0]))
	cases.Get(narrow.ForResource(boats).Informer().AddEventHandler(ears[1]))
	wide.Start(inner.Done())
	narrow.Start(inner.Done())
	cases.That(cache.WaitForCacheSync(ctx.Done(), wide.ForResource(boats).Informer().HasSynced, narrow.ForResource(boats).Informer().HasSynced), "no sync")
	cases.Get(client.Resource(boats).Namespace(space).Create(ctx, newBoat("anna", 1), metav1.CreateOptions{}))
	cases.Must(client.Resource(boats).Namespace(space).Delete(ctx, "anna", metav1.DeleteOptions{}))
	for _, each := range ears {
		each.expect(ctx, map[string]int{"added anna": 1, "deleted anna": 1})
	}
}
