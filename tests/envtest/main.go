// Command envtest starts a test environment of controller-runtime with the programs in KUBEBUILDER_ASSETS, installs a
// CustomResourceDefinition, and writes a custom resource, a Deployment and its status.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("1 passed, 0 failed")
}

func run(ctx context.Context) error {
	preserve := true
	boats := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Kind: "Boat", ListKind: "BoatList", Singular: "boat"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{boats}}
	started := time.Now()
	config, err := environment.Start()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	fmt.Println("started after", time.Since(started).Round(time.Millisecond))
	c, err := client.New(config, client.Options{})
	if err == nil {
		err = write(ctx, c)
	}
	started = time.Now()
	if stopped := environment.Stop(); stopped != nil {
		return fmt.Errorf("stop: %w", stopped)
	}
	fmt.Println("stopped after", time.Since(started).Round(time.Millisecond))
	return err
}

func write(ctx context.Context, c client.Client) error {
	boat := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Boat", "metadata": map[string]any{"name": "a", "namespace": "default"},
	}}
	if err := c.Create(ctx, boat); err != nil {
		return fmt.Errorf("create a custom resource: %w", err)
	}
	labels := map[string]string{"app": "a"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
			},
		},
	}
	if err := c.Create(ctx, deployment); err != nil {
		return fmt.Errorf("create a Deployment: %w", err)
	}
	deployment.Status.Replicas = 1
	if err := c.Status().Update(ctx, deployment); err != nil {
		return fmt.Errorf("update the status: %w", err)
	}
	if *deployment.Spec.Replicas != 1 || deployment.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return fmt.Errorf("defaults are missing: %+v", deployment.Spec)
	}
	return nil
}
