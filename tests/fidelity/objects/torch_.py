# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (cells of notebooks are text here)
"""PyTorch, in main memory. It has an environment of its own, which is large."""

from functools import partial

from tests.fidelity.case import Case

case = partial(Case, needs="torch")
T = "import torch\n"

# fmt: off
CASES = [
    case("torch tensor",T+"x = torch.arange(5)","x.tolist()==[0,1,2,3,4]"),
    case("torch view of a tensor",T+"b = torch.arange(10)\nx = b[2:5]","x[0] = 99\nb[2].item() == 99"),
    case("torch tensor over a large NumPy array",T+"import numpy as np\nb = np.arange(10_000)\nx = torch.from_numpy(b)","x[0] = 99\nb[0] == 99"),
    case("NumPy array over a torch tensor",T+"b = torch.arange(10)\nx = b.numpy()","x[0] = 99\nb[0].item() == 99"),
    case("torch views that overlap, large",T+"b = torch.arange(1_000_000)\nx = (b[:10], b[5:500_000])","x[0][5] = -1\nx[1][0].item() == -1 and b[5].item() == -1"),
    case("torch tensor with its gradient",T+"x = torch.ones(2, requires_grad=True)\n(x*2).sum().backward()","x.grad.tolist()==[2,2] and x.requires_grad"),
    case("torch module and its parameter",T+"x = torch.nn.Linear(2,2)\nw = x.weight","x.weight is w and x(torch.ones(1,2)).shape == (1,2)"),
    case("torch module with tied parameters",T+"class M(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = torch.nn.Linear(3,3)\n        self.b = torch.nn.Linear(3,3)\n        self.b.weight = self.a.weight\n    def forward(self, v):\n        return self.b(self.a(v))\nx = M()","x.b.weight is x.a.weight and x(torch.ones(1,3)).shape==(1,3)"),
    case("torch optimizer of a module",T+"m = torch.nn.Linear(2,1)\nx = torch.optim.Adam(m.parameters())\nm(torch.ones(1,2)).sum().backward()\nx.step()","x.param_groups[0]['params'][0] is m.weight and len(x.state) == 2\nbefore = m.weight.clone()\nm(torch.ones(1,2)).sum().backward()\nx.step()\nnot torch.equal(before, m.weight)"),
    case("torch schedule of an optimizer",T+"m2 = torch.nn.Linear(2,1)\no = torch.optim.SGD(m2.parameters(), lr=0.1)\nx = torch.optim.lr_scheduler.StepLR(o, 1)","x.optimizer is o\no.step()\nx.step()\nabs(o.param_groups[0]['lr']-0.01) < 1e-9"),
    case("torch Generator",T+"x = torch.Generator().manual_seed(3)\nwant = torch.rand(1, generator=torch.Generator().manual_seed(3)).item()","torch.rand(1, generator=x).item() == want"),
    case("torch data type, device, size",T+"x = (torch.float16, torch.device('cpu'), torch.Size([1,2]))","x[0] is torch.float16 and x[1].type == 'cpu' and x[2] == (1,2)"),
    case("torch DataLoader",T+"from torch.utils.data import DataLoader, TensorDataset\nx = DataLoader(TensorDataset(torch.arange(8)), batch_size=2)","sum(len(b[0]) for b in x) == 8"),
    case("torch DataLoader iterator",T+"from torch.utils.data import DataLoader\nx = iter(DataLoader(list(range(8)), batch_size=2))\nnext(x)",fate="lost"),
    case("torch module with a hook",T+"seen = []\nx = torch.nn.Linear(1,1)\n_ = x.register_forward_hook(lambda m, i, o: seen.append(1))","_ = x(torch.ones(1,1))\nseen == [1]"),
    case("torch sparse tensor",T+"x = torch.eye(3).to_sparse()","x.to_dense().sum().item() == 3"),
    case("torch result of a computation",T+"p = torch.nn.Parameter(torch.ones(2,3))\nx = p.T","x.shape == (3,2)", "rebuilt"),
]
