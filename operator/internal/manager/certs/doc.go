// Package certs makes, keeps and renews the certificate with which managers serve the admission
// webhooks and the coordinator. It also tells the API server which authority to trust. It changes
// one Secret and one ValidatingWebhookConfiguration, each by name, and no file.
//
// A renewal must disturb no client: the API server and the agents of running trials check the
// certificate with the authorities that they got earlier. So clients trust an authority long before
// it signs, and long after:
//
//	authority A   |made·····signs···········|half: B is made and told·····|trusted until B is half over
//	authority B                             |····told····|3/4: B signs, A does no more···
//	certificates  |--renewed at 2/3--|--renewed--|--...
//
// In between lies a quarter of an authority's lifetime. A trial keeps the authorities that it got
// when it started. A trial shorter than that quarter (nine months by default) never meets a
// certificate that it cannot check.
//
// Only the leading manager renews. Every manager reads the Secret again and again, serves its
// certificate, and repairs the webhooks' CA bundle, which the installation of a chart may
// overwrite. Two writers cannot collide: each writes only the version of the Secret that it read.
//
// If another program makes the certificate (cert-manager), managers only read the Secret.
package certs
