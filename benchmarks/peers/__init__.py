"""The peers. One whose packages are missing is left out."""

from peers import arrays, frameworks, ours, torch_idioms
from peers.base import Peer, Task

__all__ = ["Peer", "Task", "PEERS"]

PEERS: dict[str, type[Peer]] = {
    peer.name: peer
    for module in (ours, torch_idioms, arrays, frameworks)
    for peer in module.PEERS
}
