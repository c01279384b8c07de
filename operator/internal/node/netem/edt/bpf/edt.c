// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
//
// The egress program of package edt: it gives every packet to a known address the time at which it has to leave. The fq qdisc below keeps it until then.
// The picture of the whole, and why each step is there, is in the package's doc.go. `make bpf` compiles this file; the result is committed beside it.
//
// A packet that still belongs to a socket is not delayed itself: TCP counts what it has below it (TCP Small Queues) and would stall. A copy without the
// socket is sent through the same device, comes here a second time, and is the one that is delayed; the first is consumed, which tells TCP that it is sent.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define PRIORITY_MASK 15    // TC_PRIO_MAX
#define PRIORITY_CONTROL 7  // TC_PRIO_CONTROL: fq sends such packets at once, whatever their time
#define OWN_FLOWS 0x80000000u
#define GENERATION_SHIFT 15 // below it: the index of the link
#define FARTHEST 1000000000ull // ns; a time stamp farther ahead of now was not meant as a departure time
#define SECOND 1000000000ull
#define SEEN_LOW 0x7a550e17u // in cb[3] and cb[4]: has been here
#define SEEN_HIGH 0x9d1c63abu

// The 16 bytes as they are in a packet. An IPv4 address is written ::ffff:a.b.c.d.
struct address {
	__u64 first, last;
};

// What package edt wants of a link; it is only written there.
struct link {
	__u64 delay;   // ns
	__u64 jitter;  // ns, at most the delay
	__u64 loss;    // lost are loss of 2^32
	__u64 rate;    // bit/s, not 0
	__u64 backlog; // ns that a packet may wait for the rate
	__u32 index;   // of state and counters, below 2^15
	__u32 generation;
};

// What the program remembers of a link. Apart from struct link, so that a change there does not overwrite it.
struct state {
	struct bpf_spin_lock lock;
	__u32 generation; // that the times below belong to
	__u64 next;       // when the rate lets the next packet begin
	__u64 last;       // departure of the packet before this one; kept where there is jitter
};

// COUNT adds one. The comment for the assembler keeps the compiler from making one addition, with a computed address, of those that end a branch: the
// kernel refuses that to a process that has no CAP_PERFMON.
#define COUNT(counter) do { (counter)++; asm volatile("# " #counter ::: "memory"); } while (0)

struct counters {
	__u64 packets;
	__u64 bytes;
	__u64 lost;
	__u64 overlimit;
	__u64 failed; // dropped because no copy could be made
};

// The sizes are set when the program is loaded.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct address);
	__type(value, struct link);
} links SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counts SEC(".maps");

// Some devices have no Ethernet header: the offsets are those of the IP headers. What is on the stack is written in whole words: without CAP_PERFMON,
// Linux 6.1 refuses to write a part of what was one.
static __always_inline int destination(struct __sk_buff *skb, struct address *to)
{
	__u32 four;

	switch (skb->protocol) {
	case bpf_htons(ETH_P_IP):
		if (bpf_skb_load_bytes_relative(skb, 16, &four, 4, BPF_HDR_START_NET))
			return -1;
		to->first = 0;
		to->last = (__u64)four << 32 | bpf_htonl(0xffff);
		return 0;
	case bpf_htons(ETH_P_IPV6):
		return bpf_skb_load_bytes_relative(skb, 24, to, 16, BPF_HDR_START_NET);
	default:
		return -1;
	}
}

// fq puts packets without a connected socket into flows by their hash. The upper half of the hashes belongs to the links.
static __always_inline int pass(struct __sk_buff *skb)
{
	__u32 hash = bpf_get_hash_recalc(skb);

	if (hash & OWN_FLOWS)
		bpf_set_hash(skb, hash & ~OWN_FLOWS);
	return TC_ACT_UNSPEC;
}

// STOLEN where a packet is dropped: SHOT would count as a drop by this machine and be told to the sender, which the loss on a real path is not.
static __always_inline int depart(struct __sk_buff *skb, struct link *l, struct counters *c)
{
	__u64 now = bpf_ktime_get_ns(), stamp = skb->tstamp, base = now, delay = l->delay, start, leave = 0;
	__u64 length = skb->wire_len, cost;
	__u32 index = l->index, generation = l->generation, flow = generation << GENERATION_SHIFT;
	struct state *s;

	if (l->loss && bpf_get_prandom_u32() < l->loss) {
		COUNT(c->lost);
		return TC_ACT_STOLEN;
	}
	s = bpf_map_lookup_elem(&states, &index);
	if (!s || !l->rate)
		return TC_ACT_SHOT; // not a state that package edt makes
	if (stamp > now && stamp - now <= FARTHEST) {
		base = stamp;
		// In a flow of its own, as the packets after it need not wait for it.
		flow = bpf_get_prandom_u32() << GENERATION_SHIFT;
	}
	if (l->jitter) {
		__u64 random = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();

		delay = delay - l->jitter + random % (2 * l->jitter + 1);
	}
	cost = length * 8 * SECOND / l->rate;

	bpf_spin_lock(&s->lock);
	if (s->generation != generation) {
		s->generation = generation;
		s->next = 0;
		s->last = 0;
	}
	start = s->next > now ? s->next : now;
	if (start - now <= l->backlog) {
		s->next = start + cost;
		leave = (start > base ? start : base) + delay;
		if (l->jitter) {
			if (leave < s->last)
				leave = s->last;
			s->last = leave;
		}
	}
	bpf_spin_unlock(&s->lock);

	if (!leave) {
		COUNT(c->overlimit);
		return TC_ACT_STOLEN;
	}
	bpf_set_hash(skb, OWN_FLOWS | flow | index);
	if ((skb->priority & PRIORITY_MASK) == PRIORITY_CONTROL)
		skb->priority = 0;
	skb->tstamp = leave;
	COUNT(c->packets);
	c->bytes += length;
	return TC_ACT_UNSPEC;
}

SEC("tc")
int assay_edt(struct __sk_buff *skb)
{
	struct address to;
	struct counters *c;
	struct link *l;
	__u32 index;

	if (destination(skb, &to))
		return pass(skb);
	l = bpf_map_lookup_elem(&links, &to);
	if (!l)
		return pass(skb);
	index = l->index;
	c = bpf_map_lookup_elem(&counts, &index);
	if (!c)
		return TC_ACT_SHOT;
	// A copy has no socket. Should a device give it one, the mark ends what would be a loop.
	if (!skb->sk || (skb->cb[3] == SEEN_LOW && skb->cb[4] == SEEN_HIGH))
		return depart(skb, l, c);
	skb->cb[3] = SEEN_LOW;
	skb->cb[4] = SEEN_HIGH;
	if (bpf_clone_redirect(skb, skb->ifindex, 0) < 0)
		COUNT(c->failed);
	return TC_ACT_STOLEN;
}

// bpf_ktime_get_ns is only for programs whose licence is compatible with the GPL.
char licence[] SEC("license") = "Dual MIT/GPL";
