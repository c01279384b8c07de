// Package certs makes, keeps and renews the certificate that managers serve the admission webhooks
// and the coordinator with, and tells the API server which authority to trust. It touches one
// Secret and one ValidatingWebhookConfiguration, each by name, and no file.
//
// Renewal must never be noticed: the API server and the agents of running trials check the
// certificate against authorities that they were given earlier. So an authority is trusted long
// before it signs, and long after:
//
//	authority A   |made·····signs···········|half: B is made and told·····|trusted until B is half over
//	authority B                             |····told····|3/4: B signs, A does no more···
//	certificates  |--renewed at 2/3--|--renewed--|--...
//
// In between lies a quarter of an authority's lifetime. A trial holds the authorities that were
// told when it started. A trial shorter than that quarter (nine months by default) never meets a
// certificate that it cannot check.
//
// One manager renews: the one that leads. Every manager reads the Secret again and again, serves
// what it finds there, and repairs the webhooks' CA bundle. Installing a chart may overwrite that.
// Two writers cannot collide: each writes only the version of the Secret that it read.
//
// Where another program makes the certificate (cert-manager), the Secret is only read.
package certs
