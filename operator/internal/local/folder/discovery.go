package folder

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/internal/text/buildinfo"
)

// discovery answers a client that asks for the kinds and their paths. It returns nil if the path
// asks for something else.
func discovery(path string) any {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/version":
		return map[string]string{"gitVersion": buildinfo.Version()}
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case path == "/apis":
		return apiGroups()
	case len(parts) == 2 && parts[0] == "api":
		return apiResources("", parts[1])
	case len(parts) == 3 && parts[0] == "apis":
		return apiResources(parts[1], parts[2])
	}
	return nil
}

func apiGroups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range Kinds {
		if k.Group == "" || slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Group }) {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: k.apiVersion(), Version: k.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
	}
	return list
}

func apiResources(group, version string) any {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, k := range Kinds {
		if k.Group == group && k.Version == version {
			list.GroupVersion = k.apiVersion()
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.Resource, SingularName: strings.ToLower(k.Kind), Namespaced: !k.Cluster, Kind: k.Kind,
				Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
			})
		}
	}
	if list.GroupVersion == "" {
		return nil
	}
	return list
}

// discover answers a request for the kinds and their paths. It returns false for any other request.
func discover(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	found := discovery(r.URL.Path)
	if found == nil {
		return false
	}
	_ = reply(w, http.StatusOK, found) // the client may be gone
	return true
}
