// What a page adds to its figures where scripts run: the value below the pointer, zoom, and a
// larger view. Without it the page is whole, and so is what is printed: the numbers are in tables.
// A page that changes by itself puts its new parts there by assayFigures.replace.
(() => {
  'use strict';
  const near = 24; // pixels from a mark within which the pointer means it
  const most = 16; // times

  // numbers reads a list of them from an attribute.
  const numbers = (text) => text.split(' ').map(Number);

  // frames of a figure: what a place in it means, by the attributes that its drawing has.
  const framesOf = (svg) => [...svg.querySelectorAll('[data-frame]')].map((e) => {
    const [left, top, width, height, xMin, xMax, yMin, yMax, logX, logY] = numbers(e.dataset.frame);
    const value = (share, low, high, log) => log ? low * Math.pow(high / low, share) : low + share * (high - low);
    const rounded = (v, low, high, log, length) => {
      if (log) return String(Number(v.toPrecision(3))); // a tenth of a unit is as much as is drawn
      const unit = Math.pow(10, Math.ceil(Math.log10((high - low) / length / 10)));
      return (Math.round(v / unit) * unit).toFixed(Math.max(0, -Math.round(Math.log10(unit))));
    };
    return {
      left, top, right: left + width, bottom: top + height, xLabel: e.dataset.x, yLabel: e.dataset.y,
      x: (at) => rounded(value((at - left) / width, xMin, xMax, logX), xMin, xMax, logX, width),
      y: (at) => rounded(value((top + height - at) / height, yMin, yMax, logY), yMin, yMax, logY, height),
    };
  });
  const holds = (f, x, y) => x >= f.left - 1 && x <= f.right + 1 && y >= f.top - 1 && y <= f.bottom + 1;

  const pointsOf = (d) => [...d.matchAll(/([ML])(-?[\d.]+),(-?[\d.]+)(h?)/g)].map((m) => [Number(m[2]) + (m[4] ? 1 : 0), Number(m[3])]);

  // spreadOf is the band around a line where it has a name: for each point where it is lowest and
  // highest. Its path goes along the highest places and back along the lowest.
  const spreadOf = (line, n) => {
    const band = line.parentNode.querySelector(':scope > path.band[data-name]'), edge = band ? pointsOf(band.getAttribute('d')) : [];
    return edge.length === 2 * n ? {name: band.dataset.name, at: (i) => [edge[2 * n - 1 - i][1], edge[i][1]]} : null;
  };

  // linesOf are the lines of a figure with the places of their points; not whiskers, and not those
  // of a legend.
  const linesOf = (svg, frames) => [...svg.querySelectorAll('path.line')].flatMap((e) => {
    const d = e.getAttribute('d');
    if (/[HVCZ]/.test(d)) return [];
    const points = pointsOf(d), frame = frames.find((f) => points.length > 0 && points.every(([x, y]) => holds(f, x, y)));
    return frame ? [{frame, points, name: e.dataset.name, spread: spreadOf(e, points.length)}] : [];
  });

  // sameAxis says whether two frames lie above each other over the same axis, as those of a course
  // over time.
  const sameAxis = (a, b) => a.left === b.left && a.right === b.right && a.xLabel === b.xLabel;

  // rowsOf are the rows of a heatmap with the values of their cells, from the left to the right.
  const rowsOf = (svg) => [...svg.querySelectorAll('[data-values]')].map((e) => ({name: e.dataset.name, values: e.dataset.values.split(' ')}));

  class Figure {
    constructor(svg) {
      this.svg = svg;
      this.home = svg.closest('figure');
      this.whole = numbers(svg.getAttribute('viewBox'));
      this.box = [...this.whole];
      this.frames = framesOf(svg);
      this.lines = linesOf(svg, this.frames);
      this.rows = rowsOf(svg);
      this.marks = [...svg.querySelectorAll('[data-says], path:has(> title), circle:has(> title)')];
      this.list = 0; // which of the lists of stops the keyboard is in
      this.at = -1; // at which of its stops
      this.pointer = null; // where the pointer is in the window
      this.closing = null; // what ends the listening to the dialog that this is in
      this.focus = [this.whole[2] / 2, this.whole[3] / 2];
      this.readout = document.createElement('div');
      this.readout.className = 'readout';
      this.readout.setAttribute('role', 'status');
      this.tools = document.createElement('div');
      this.tools.className = 'tools';
      const title = svg.querySelector('title'), name = title.textContent;
      this.id = title.id + ' ' + name;
      this.button('+', 'Zoom in: ' + name, () => this.zoom(2));
      this.button('−', 'Zoom out: ' + name, () => this.zoom(0.5));
      this.enlarge = this.button('⤢', 'Enlarge: ' + name, () => this.open());
      this.home.classList.add('live');
      this.home.append(this.tools, this.readout);
      svg.tabIndex = 0;
      svg.addEventListener('pointermove', (e) => this.move(e));
      svg.addEventListener('pointerdown', (e) => this.down(e));
      svg.addEventListener('pointerup', () => { this.from = null; });
      svg.addEventListener('pointerleave', () => { this.pointer = null; this.say(''); });
      svg.addEventListener('dblclick', (e) => { this.focus = this.place(e); this.zoom(2); });
      svg.addEventListener('keydown', (e) => this.key(e));
      svg.addEventListener('focus', () => { if (svg.matches(':focus-visible') && this.at < 0) this.say(this.help()); });
      svg.addEventListener('blur', () => { this.at = -1; this.say(''); });
    }

    help() { return '← →: values; ' + (this.lists().length > 1 ? '↑ ↓: others; ' : '') + '+ −: zoom; 0: all of it; Enter: enlarge'; }

    button(text, label, act) {
      const b = document.createElement('button');
      b.type = 'button';
      b.textContent = text;
      b.setAttribute('aria-label', label);
      b.addEventListener('click', act);
      this.tools.append(b);
      return b;
    }

    // place of the pointer in the drawing's units.
    place(e) {
      const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      return [p.x, p.y];
    }

    // pixel is where a place of the drawing is in the window.
    pixel(x, y) {
      const p = new DOMPoint(x, y).matrixTransform(this.svg.getScreenCTM());
      return [p.x, p.y];
    }

    // say shows a text beside a place of the window, within what the figure is in.
    say(text, x = 0, y = 0) {
      this.readout.textContent = text;
      this.readout.style.left = 0; // where it has the room that its text takes
      const outer = this.readout.parentElement, box = outer.getBoundingClientRect();
      const left = x ? x - box.left + 12 : 0, top = y ? y - box.top + 12 : 0;
      this.readout.style.left = Math.max(0, Math.min(left, box.width - this.readout.offsetWidth - 2)) + outer.scrollLeft + 'px';
      this.readout.style.top = Math.max(0, Math.min(top, box.height - this.readout.offsetHeight - 2)) + 'px';
    }

    textOf(mark) { return mark.dataset.says || mark.querySelector(':scope > title').textContent; }

    move(e) {
      if (this.from) {
        const [x, y] = this.place(e);
        this.show(this.box[0] + this.from[0] - x, this.box[1] + this.from[1] - y, this.box[2]);
        return;
      }
      this.focus = this.place(e);
      this.pointer = [e.clientX, e.clientY];
      this.say(this.textAt(...this.pointer), ...this.pointer);
    }

    // textAt is what the nearest mark says, of several the smallest; else what the lines are at, or
    // the cell of a heatmap.
    textAt(clientX, clientY) {
      let best = null;
      for (const mark of this.marks) {
        const r = mark.getBoundingClientRect();
        const away = Math.hypot(Math.max(r.left - clientX, 0, clientX - r.right), Math.max(r.top - clientY, 0, clientY - r.bottom));
        const area = r.width * r.height;
        if (away <= near && (!best || away < best.away || away === best.away && area < best.area)) best = {away, area, mark};
      }
      if (best) return this.textOf(best.mark);
      const [x, y] = this.place({clientX, clientY}), frame = this.frames.find((f) => holds(f, x, y));
      if (!frame) return '';
      return this.rows.length ? this.cellAt(...this.cellOf(x, y)) : this.linesAt(frame, x);
    }

    // cellOf is the row and the column of a heatmap at a place.
    cellOf(x, y) {
      const f = this.frames[0], of = (at, from, to, n) => Math.max(0, Math.min(n - 1, Math.floor((at - from) / (to - from) * n)));
      const row = of(y, f.top, f.bottom, this.rows.length);
      return [row, of(x, f.left, f.right, this.rows[row].values.length)];
    }

    // middleOf is the middle of a cell.
    middleOf(row, column) {
      const f = this.frames[0];
      return [f.left + (f.right - f.left) * (column + 0.5) / this.rows[row].values.length, f.top + (f.bottom - f.top) * (row + 0.5) / this.rows.length];
    }

    cellAt(row, column) {
      const f = this.frames[0], value = this.rows[row].values[column];
      return f.xLabel + ': ' + f.x(this.middleOf(row, column)[0]) + '\n' + this.rows[row].name + ', ' + f.yLabel + ': ' + (value === '-' ? 'none' : value);
    }

    // linesAt has a row for each line of a frame, and of frames over the same axis, at its point that
    // is nearest to x.
    linesAt(frame, x) {
      const lines = this.lines.filter((l) => sameAxis(l.frame, frame)), several = lines.some((l) => l.frame !== lines[0].frame);
      const rows = lines.map((line) => {
        const i = line.points.reduce((a, p, k) => Math.abs(p[0] - x) < Math.abs(line.points[a][0] - x) ? k : a, 0), [px, py] = line.points[i];
        const name = line.name ? line.name + (several ? ', ' + line.frame.yLabel : '') : line.frame.yLabel;
        const spread = line.spread ? ', ' + line.spread.name + ' ' + line.spread.at(i).map(line.frame.y).join(' to ') : '';
        return {at: line.frame.x(px), text: name + ': ' + line.frame.y(py) + spread};
      });
      if (rows.length === 0) return '';
      if (rows.every((r) => r.at === rows[0].at)) return [frame.xLabel + ': ' + rows[0].at, ...rows.map((r) => r.text)].join('\n');
      return [frame.xLabel, ...rows.map((r) => r.text + ' at ' + r.at)].join('\n');
    }

    key(e) {
      const acts = {
        ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), ArrowDown: () => this.turn(1), ArrowUp: () => this.turn(-1), '+': () => this.zoom(2), '=': () => this.zoom(2),
        '-': () => this.zoom(0.5), 0: () => this.reset(), Enter: () => this.open(),
      };
      if (e.key === 'Escape' && this.box[2] < this.whole[2]) acts.Escape = () => this.reset();
      if (!acts[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      acts[e.key]();
    }

    // lists are what the keyboard goes through: marks, the points of lines, the rows of a heatmap. A
    // stop gives its text, and its place in the drawing.
    lists() {
      const lists = [];
      if (this.marks.length) {
        lists.push(this.marks.map((mark) => () => {
          const r = mark.getBoundingClientRect();
          return [this.textOf(mark), this.place({clientX: r.left + r.width / 2, clientY: r.top + r.height / 2})];
        }));
      }
      this.frames.forEach((frame, n) => {
        if (this.frames.slice(0, n).some((f) => sameAxis(f, frame))) return;
        const line = this.lines.filter((l) => sameAxis(l.frame, frame)).reduce((a, b) => a && a.points.length >= b.points.length ? a : b, null);
        if (line) lists.push(line.points.map((p) => () => [this.linesAt(frame, p[0]), p]));
      });
      this.rows.forEach((row, r) => lists.push(row.values.map((_, c) => () => [this.cellAt(r, c), this.middleOf(r, c)])));
      return lists;
    }

    // step goes to the next stop of the list.
    step(by) {
      const n = this.lists()[this.list]?.length;
      if (!n) return;
      this.at = (this.at + by + n + (this.at < 0 && by < 0 ? 1 : 0)) % n;
      this.tell();
    }

    // turn goes to the next list, at the same stop if it has one.
    turn(by) {
      const lists = this.lists();
      if (lists.length < 2) return;
      this.list = (this.list + by + lists.length) % lists.length;
      this.at = Math.max(0, Math.min(this.at, lists[this.list].length - 1));
      this.tell();
    }

    // tell says what the stop of the keyboard says.
    tell() {
      const [text, place] = this.lists()[this.list][this.at]();
      this.focus = place;
      this.say(text, ...this.pixel(...place));
    }

    // zoom keeps the place that the reader is at where it is.
    zoom(by) {
      const width = Math.min(this.whole[2], Math.max(this.whole[2] / most, this.box[2] / by)), factor = width / this.box[2];
      this.show(this.focus[0] - (this.focus[0] - this.box[0]) * factor, this.focus[1] - (this.focus[1] - this.box[1]) * factor, width);
    }

    reset() { this.show(this.whole[0], this.whole[1], this.whole[2]); }

    show(x, y, width) {
      const height = this.whole[3] * width / this.whole[2];
      this.box = [Math.max(0, Math.min(x, this.whole[2] - width)), Math.max(0, Math.min(y, this.whole[3] - height)), width, height];
      this.svg.setAttribute('viewBox', this.box.join(' '));
      this.svg.classList.toggle('zoomed', width < this.whole[2]);
      this.say('');
    }

    down(e) {
      if (e.button !== 0 || this.box[2] >= this.whole[2]) return;
      this.from = this.place(e);
      this.dragging = e.pointerId;
      this.svg.setPointerCapture(e.pointerId);
      e.preventDefault();
    }

    // open shows the figure as large as the window, and puts it back afterwards.
    open() {
      if (this.closing) return;
      this.home.style.minHeight = this.home.offsetHeight + 'px';
      dialog.replaceChildren(this.tools, this.svg, this.readout);
      this.enlarge.hidden = true;
      this.closing = new AbortController();
      dialog.addEventListener('close', () => {
        this.closing = null;
        this.reset();
        this.enlarge.hidden = false;
        this.home.append(this.svg, this.tools, this.readout);
        this.home.style.minHeight = '';
        this.svg.focus({preventScroll: true});
      }, {once: true, signal: this.closing.signal});
      dialog.setAttribute('aria-label', this.svg.querySelector('title').textContent);
      if (!dialog.open) dialog.showModal();
      this.svg.focus();
    }

    // leave notes what the reader has the focus on, and whether the pointer drags, before the figure
    // goes.
    leave() {
      this.focused = [this.svg, ...this.tools.children].indexOf(document.activeElement);
      this.drags = this.from && this.svg.hasPointerCapture(this.dragging);
    }

    // goOn takes the place of a figure that went: zoomed, read, focused and enlarged as that was.
    goOn(old) {
      if (old.closing) {
        old.closing.abort();
        this.open();
      }
      [this.list, this.focus, this.pointer] = [old.list, old.focus, old.pointer];
      this.show(...old.box);
      if (old.drags) {
        [this.from, this.dragging] = [old.from, old.dragging];
        this.svg.setPointerCapture(this.dragging);
      }
      const stops = this.lists()[this.list];
      if (stops && old.at >= 0) this.at = Math.min(old.at, stops.length - 1);
      if (old.focused >= 0) [this.svg, ...this.tools.children][old.focused].focus({preventScroll: true});
      this.again();
    }

    // again says what the reader is at, where that is now.
    again() {
      if (this.at >= 0) this.tell();
      else if (this.pointer && !this.from) this.say(this.textAt(...this.pointer), ...this.pointer);
    }
  }

  const dialog = document.createElement('dialog');
  dialog.className = 'enlarged';
  dialog.addEventListener('click', (e) => { if (e.target === dialog) dialog.close(); });
  const enhance = (part) => [...part.querySelectorAll('figure > svg[role=img]')].map((svg) => new Figure(svg));
  let figures = enhance(document);
  if (figures.length) document.body.append(dialog);
  window.addEventListener('beforeprint', () => { dialog.close(); figures.forEach((f) => f.reset()); });
  window.addEventListener('resize', () => figures.forEach((f) => f.again()));

  // replace gives a part of the page another content. A figure that is in both stays as the reader
  // left it.
  const replace = (part, html) => {
    const gone = figures.filter((f) => part.contains(f.home));
    gone.forEach((f) => f.leave());
    part.innerHTML = html; // the server's templates have escaped it
    const come = enhance(part);
    figures = [...figures.filter((f) => !gone.includes(f)), ...come];
    if (come.length && !dialog.isConnected) document.body.append(dialog);
    for (const f of gone) {
      const next = come.find((n) => n.id === f.id);
      if (next) next.goOn(f);
      else if (f.closing) dialog.close();
    }
  };
  window.assayFigures = {replace};
})();
