# Functions for the cases of kubectl.

# boat NAME SAILS: the manifest of a boat; both may continue the object that they are in
boat() {
  printf 'apiVersion: harbor.example.com/v1\nkind: Boat\nmetadata: {name: %s}\nspec: {sails: %s}\n' "$1" "$2"
}

# a boat that owns two ConfigMaps
owned() {
  boat nina 3 | kubectl create -f -
  local owner="apiVersion: harbor.example.com/v1, kind: Boat, name: nina, blockOwnerDeletion: true"
  owner="$owner, uid: $(kubectl get boat nina -o jsonpath={.metadata.uid})"
  for name in deck hull; do
    printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, ownerReferences: [{%s}]}\n' "$name" "$owner" | kubectl create -f -
  done
}

# define NAME: applies a definition of the tutorial, and waits until it is established
define() {
  kubectl apply -f "crontabs-$1.yaml" &&
    kubectl wait --for=condition=Established crd/crontabs.stable.example.com --timeout=30s
}

# crontab [FIELD...]: the manifest of the tutorial, with other fields
crontab() {
  printf 'apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata:\n  name: my-new-cron-object\nspec:\n'
  [ $# -gt 0 ] || set -- 'cronSpec: "* * * * */5"' 'image: my-awesome-cron-image'
  printf '  %s\n' "$@"
}
