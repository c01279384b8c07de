
filled <- c(16, 15, 17, 18, 25, 3, 7, 8)
hollow <- c(1, 0, 2, 5, 6, 4, 12, 11)
at <- names$style %% 8 + 1
shapes <- setNames(ifelse(names$paper, hollow[at], filled[at]), names$name)
colors <- setNames(names$color, names$name)
dashes <- setNames(ifelse(names$paper, "dashed", "solid"), names$name)

axis <- function(scale, a) {
  scale(name = a$label, breaks = a$ticks, labels = format(a$ticks, trim = TRUE, scientific = FALSE, drop0trailing = TRUE), minor_breaks = NULL,
    trans = if (a$log) "log10" else "identity", expand = expansion(0))
}

plot <- ggplot() +
  scale_color_manual(values = colors, breaks = names$name, name = NULL) +
  scale_fill_manual(values = colors, breaks = names$name, name = NULL) +
  theme_bw(base_size = font, base_family = family) +
  theme(legend.position = "top", plot.margin = margin(2, 8, 2, 2))
if (nrow(totals) == 0) {
  plot <- plot +
    geom_ribbon(data = subset(data, band), aes(x = x, ymin = ylow, ymax = yhigh, fill = curve), alpha = 0.22, show.legend = FALSE) +
    geom_linerange(data = subset(data, !is.na(ylow) & !band), aes(x = x, ymin = ylow, ymax = yhigh, color = curve), linewidth = 0.3, show.legend = FALSE) +
    geom_linerange(data = subset(data, !is.na(xlow) & !band), aes(y = y, xmin = xlow, xmax = xhigh, color = curve), linewidth = 0.3, show.legend = FALSE) +
    geom_path(data = subset(data, line), aes(x = x, y = y, color = curve, linetype = curve), linewidth = 0.4) +
    geom_point(data = subset(data, dots), aes(x = x, y = y, color = curve, shape = curve), size = 1.4) +
    geom_vline(data = marks, aes(xintercept = x), linewidth = 0.3, linetype = ifelse(marks$ends, "dashed", "solid")) +
    scale_shape_manual(values = shapes, breaks = names$name, name = NULL) +
    scale_linetype_manual(values = dashes, breaks = names$name, name = NULL) +
    axis(scale_x_continuous, x) + axis(scale_y_continuous, y) +
    coord_cartesian(xlim = c(x$min, x$max), ylim = c(y$min, y$max))
  if (one != "") plot <- plot + geom_hline(yintercept = 1, linewidth = 0.3, linetype = "dashed")
} else {
  if (x$log) {
    plot <- plot + geom_point(data = totals, aes(x = value, y = -row, color = name), size = 1.6, show.legend = FALSE)
  } else {
    plot <- plot + geom_rect(data = boxes, aes(xmin = from, xmax = to, ymin = -bottom, ymax = -top, fill = name), alpha = ifelse(boxes$hollow, 0.25, 0.6), show.legend = parts)
  }
  plot <- plot +
    geom_linerange(data = subset(totals, !is.na(low)), aes(y = -row, xmin = low, xmax = high), color = "#333333", linewidth = 0.3) +
    geom_point(data = subset(totals, !is.na(paper) & !parts), aes(x = paper, y = -row, color = name), shape = 1, size = 1.6, show.legend = FALSE) +
    axis(scale_x_continuous, x) +
    scale_y_continuous(name = y$label, breaks = -rows$row, labels = rows$label, minor_breaks = NULL) +
    coord_cartesian(xlim = c(x$min, x$max), ylim = rev(-range(rows$row)) + c(-0.6, 0.5)) +
    theme(panel.grid.major.y = element_blank())
  if (one != "") plot <- plot + geom_vline(xintercept = 1, linewidth = 0.3, linetype = "dashed")
}
ggsave(paste0(name, ".pdf"), plot, width = width, height = height)
