// Package expr stands in for the file of this name of github.com/google/nftables: build.sh puts
// this one in its place. A kernel without CONFIG_NFT_QUEUE, as in many small virtual machines, has
// no expression that hands packets to a program. The target NFQUEUE of iptables does the same, and
// nftables can call it where the kernel has CONFIG_NFT_COMPAT.
package expr

import (
	"github.com/google/nftables/binaryutil"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// QueueFlag changes what happens to a packet.
type QueueFlag uint16

// The flags, which the target has, too.
const (
	QueueFlagBypass QueueFlag = unix.NFT_QUEUE_FLAG_BYPASS
	QueueFlagFanout QueueFlag = unix.NFT_QUEUE_FLAG_CPU_FANOUT
	QueueFlagMask   QueueFlag = unix.NFT_QUEUE_FLAG_MASK
)

// revision of the target whose data are three numbers.
const revision = 3

// Queue hands packets to the program that listens at a queue.
type Queue struct {
	Num   uint16
	Total uint16
	Flag  QueueFlag
}

func (e *Queue) marshal(fam byte) ([]byte, error) {
	data, err := e.marshalData(fam)
	if err != nil {
		return nil, err
	}
	return netlink.MarshalAttributes([]netlink.Attribute{
		{Type: unix.NFTA_EXPR_NAME, Data: []byte("target\x00")},
		{Type: unix.NLA_F_NESTED | unix.NFTA_EXPR_DATA, Data: data},
	})
}

// marshalData writes struct xt_NFQ_info_v3, which ends at a multiple of eight bytes.
func (e *Queue) marshalData(byte) ([]byte, error) {
	var info []byte
	for _, number := range []uint16{e.Num, max(e.Total, 1), uint16(e.Flag), 0} {
		info = append(info, binaryutil.NativeEndian.PutUint16(number)...)
	}
	return netlink.MarshalAttributes([]netlink.Attribute{
		{Type: unix.NFTA_TARGET_NAME, Data: []byte("NFQUEUE\x00")},
		{Type: unix.NFTA_TARGET_REV, Data: binaryutil.BigEndian.PutUint32(revision)},
		{Type: unix.NFTA_TARGET_INFO, Data: info},
	})
}

// unmarshal has nothing to do: rules that are read have the target.
func (e *Queue) unmarshal(byte, []byte) error { return nil }
