

def text(s):
    return s.replace("$", r"\$")


MARKERS = ["o", "s", "^", "D", "v", "P", ">", "<"]
plt.rcParams.update({"font.size": FONT, "font.family": FAMILY, "axes.labelsize": FONT, "legend.fontsize": FONT, "axes.grid": True, "grid.color": "#e5e5e5",
                     "axes.axisbelow": True, "pdf.fonttype": 42, "lines.markersize": FONT / 2, "lines.linewidth": 1})
figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")


def axis(which, a):
    if a["log"]:
        getattr(axes, "set_%sscale" % which)("log")
    getattr(axes, "set_%slim" % which)(a["min"], a["max"])
    getattr(axes, "set_%sticks" % which)(a["ticks"], ["%g" % t for t in a["ticks"]])
    if a["log"]:
        getattr(axes, which + "axis").set_minor_locator(plt.NullLocator())
    getattr(axes, "set_%slabel" % which)(text(a["label"]))


def curves():
    for c in CURVES:
        p = c["points"]
        x, y = [q[0] for q in p], [q[1] for q in p]
        style = dict(color=c["color"], label=text(c["name"]), linestyle="--" if c["paper"] else "-")
        if c["dots"]:
            style["linestyle"] = "none"
        if not c["line"]:
            style.update(clip_on=False, zorder=3, marker=MARKERS[c["style"] % len(MARKERS)], markerfacecolor="white" if c["paper"] else c["color"])
        axes.plot(x, y, **style)
        within = [q for q in p if q[2] is not None]
        if c["band"]:
            axes.fill_between([q[0] for q in within], [q[4] for q in within], [q[5] for q in within], color=c["color"], alpha=0.22, linewidth=0)
        elif within:
            axes.errorbar([q[0] for q in within], [q[1] for q in within], fmt="none", ecolor=c["color"], elinewidth=0.75, capsize=FONT / 4,
                          xerr=[[q[0] - q[2] for q in within], [q[3] - q[0] for q in within]],
                          yerr=[[q[1] - q[4] for q in within], [q[5] - q[1] for q in within]])
    named = set()
    for x, name, ends in MARKS:
        axes.axvline(x, color="#333333", linewidth=0.75, linestyle="--" if ends else "-", label=None if name in named else text(name))
        named.add(name)


def bars():
    row, group, places, labels = 0, None, [], []
    for b in BARS:
        if b["group"] and b["group"] != group:
            places.append(row)
            labels.append(text(b["group"]))
            row += 1
        group = b["group"]
        places.append(row)
        labels.append(text(b["name"]))
        left = 0
        for i, part in enumerate(b["parts"]):
            axes.barh(row, part, left=left, height=0.6, color=PARTS[i][1], label=text(PARTS[i][0]) if b is BARS[0] else None)
            left += part
        left = 0
        for i, part in enumerate(b["paper_parts"]):
            axes.barh(row + 0.41, part, left=left, height=0.18, facecolor="white", edgecolor=PARTS[i][1], linewidth=0.75)
            left += part
        if not b["parts"] and X["log"]:
            axes.plot([b["value"]], [row], "o", color=b["color"])
        elif not b["parts"]:
            axes.barh(row, b["value"], height=0.6, facecolor=b["color"] + "40", edgecolor=b["color"], linewidth=0.75)
        if b["low"] is not None:
            axes.errorbar([b["value"]], [row], xerr=[[b["value"] - b["low"]], [b["high"] - b["value"]]], fmt="none", ecolor="#333333", elinewidth=0.75, capsize=FONT / 4)
        if b["paper"] is not None and not b["paper_parts"]:
            axes.plot([b["paper"]], [row], "o", markerfacecolor="white", color=b["color"])
        row += 1
    axes.set_ylim(row - 0.5, -0.5)
    axes.set_yticks(places, labels)
    axes.set_ylabel(text(Y["label"]))
    axes.grid(axis="y", visible=False)


axis("x", X)
if BARS:
    bars()
    if ONE:
        axes.axvline(1, color="#333333", linewidth=0.75, linestyle="--", label=text(ONE))
else:
    axis("y", Y)
    curves()
    if ONE:
        axes.axhline(1, color="#333333", linewidth=0.75, linestyle="--", label=text(ONE))
handles, names = axes.get_legend_handles_labels()
if len(handles) > 1 or PARTS:
    most = max(len(n) for n in names) * FONT / 2 + 4 * FONT  # the widest entry, in points
    figure.legend(handles, names, loc="outside upper center", ncols=max(1, int(WIDTH * 72 / most)), frameon=False)
figure.savefig(NAME + ".pdf")
