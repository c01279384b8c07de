// What a page adds to its figures where scripts run: the value below the pointer, zoom, and a
// larger view. Without it the page is whole, and so is what is printed: the numbers are in tables.
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

  // linesOf are the lines of a figure with the places of their points; not whiskers, and not those
  // of a legend.
  const linesOf = (svg, frames) => [...svg.querySelectorAll('path.line')].flatMap((e) => {
    const d = e.getAttribute('d');
    if (/[HVCZ]/.test(d)) return [];
    const points = [...d.matchAll(/([ML])(-?[\d.]+),(-?[\d.]+)(h?)/g)].map((m) => [Number(m[2]) + (m[4] ? 1 : 0), Number(m[3])]);
    const frame = frames.find((f) => points.length > 0 && points.every(([x, y]) => holds(f, x, y)));
    return frame ? [{frame, points, name: e.dataset.name || frame.yLabel}] : [];
  });

  class Figure {
    constructor(svg) {
      this.svg = svg;
      this.home = svg.closest('figure');
      this.whole = numbers(svg.getAttribute('viewBox'));
      this.box = [...this.whole];
      this.frames = framesOf(svg);
      this.lines = linesOf(svg, this.frames);
      this.marks = [...svg.querySelectorAll('[data-says], path:has(> title), circle:has(> title)')];
      this.at = -1; // which of the marks the keyboard is at, or of the places of lines
      this.focus = [this.whole[2] / 2, this.whole[3] / 2];
      this.readout = document.createElement('div');
      this.readout.className = 'readout';
      this.readout.setAttribute('role', 'status');
      this.tools = document.createElement('div');
      this.tools.className = 'tools';
      const name = svg.querySelector('title').textContent;
      this.button('+', 'Zoom in: ' + name, () => this.zoom(2));
      this.button('−', 'Zoom out: ' + name, () => this.zoom(0.5));
      this.enlarge = this.button('⤢', 'Enlarge: ' + name, () => this.open());
      this.home.classList.add('live');
      this.home.append(this.tools, this.readout);
      svg.tabIndex = 0;
      svg.addEventListener('pointermove', (e) => this.move(e));
      svg.addEventListener('pointerdown', (e) => this.down(e));
      svg.addEventListener('pointerup', () => { this.from = null; });
      svg.addEventListener('pointerleave', () => this.say(''));
      svg.addEventListener('dblclick', (e) => { this.focus = this.place(e); this.zoom(2); });
      svg.addEventListener('keydown', (e) => this.key(e));
      svg.addEventListener('focus', () => { if (svg.matches(':focus-visible')) this.say('← →: values; + −: zoom; 0: all of it; Enter: enlarge'); });
      svg.addEventListener('blur', () => { this.at = -1; this.say(''); });
    }

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
      this.say(this.textAt(e.clientX, e.clientY), e.clientX, e.clientY);
    }

    // textAt is what the nearest mark says, of several the smallest; else what the lines are at.
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
      return frame ? this.linesAt(frame, x) : '';
    }

    // linesAt has a row for each line of a frame, at its point that is nearest to x.
    linesAt(frame, x) {
      const rows = this.lines.filter((l) => l.frame === frame).map((line) => {
        const [px, py] = line.points.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a);
        return {at: frame.x(px), text: line.name + ': ' + frame.y(py)};
      });
      if (rows.length === 0) return '';
      if (rows.every((r) => r.at === rows[0].at)) return [frame.xLabel + ': ' + rows[0].at, ...rows.map((r) => r.text)].join('\n');
      return [frame.xLabel, ...rows.map((r) => r.text + ' at ' + r.at)].join('\n');
    }

    key(e) {
      const acts = {
        ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), '+': () => this.zoom(2), '=': () => this.zoom(2),
        '-': () => this.zoom(0.5), 0: () => this.reset(), Enter: () => this.open(),
      };
      if (e.key === 'Escape' && this.box[2] < this.whole[2]) acts.Escape = () => this.reset();
      if (!acts[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      acts[e.key]();
    }

    // step goes to the next mark; where there is none, to the next point of the first line.
    step(by) {
      const line = this.lines[0], n = this.marks.length || (line ? line.points.length : 0);
      if (n === 0) return;
      this.at = (this.at + by + n + (this.at < 0 && by < 0 ? 1 : 0)) % n;
      if (this.marks.length) {
        const r = this.marks[this.at].getBoundingClientRect(), x = r.left + r.width / 2, y = r.top + r.height / 2;
        this.focus = this.place({clientX: x, clientY: y});
        this.say(this.textOf(this.marks[this.at]), x, y);
        return;
      }
      this.focus = line.points[this.at];
      this.say(this.linesAt(line.frame, this.focus[0]), ...this.pixel(...this.focus));
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
      this.svg.setPointerCapture(e.pointerId);
      e.preventDefault();
    }

    // open shows the figure as large as the window, and puts it back afterwards.
    open() {
      if (this.home.contains(this.svg)) {
        this.home.style.minHeight = this.home.offsetHeight + 'px';
        dialog.replaceChildren(this.tools, this.svg, this.readout);
        this.enlarge.hidden = true;
        dialog.addEventListener('close', () => {
          this.reset();
          this.enlarge.hidden = false;
          this.home.append(this.svg, this.tools, this.readout);
          this.home.style.minHeight = '';
          this.svg.focus({preventScroll: true});
        }, {once: true});
        dialog.setAttribute('aria-label', this.svg.querySelector('title').textContent);
        dialog.showModal();
        this.svg.focus();
      }
    }
  }

  const dialog = document.createElement('dialog');
  dialog.className = 'enlarged';
  dialog.addEventListener('click', (e) => { if (e.target === dialog) dialog.close(); });
  const figures = [...document.querySelectorAll('figure > svg[role=img]')].map((svg) => new Figure(svg));
  if (figures.length) document.body.append(dialog);
  window.addEventListener('beforeprint', () => { dialog.close(); figures.forEach((f) => f.reset()); });
})();
