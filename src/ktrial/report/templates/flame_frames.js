'use strict';
// Flame graphs of a page, drawn from their frames when they are opened: as flame_graph.py draws them into files.
(function () {
  const SVG = 'http://www.w3.org/2000/svg';
  const ROW = 17, LINE = 18, STRENGTHS = 6;
  const MINUS = '\u2212', SPACE = '\u00a0';

  function rounded(value, digits, most) {
    const options = {minimumFractionDigits: digits, maximumFractionDigits: most, roundingMode: 'halfEven'};
    const text = Math.abs(value).toLocaleString('en', options);
    return value < 0 && /[1-9]/.test(text) ? MINUS + text : text;
  }

  function number(value) {
    const size = Math.abs(value);
    if (size >= 10000 || !size) return rounded(value, 0, 0);
    return rounded(value, 0, Math.min(12, Math.max(0, 4 - Math.floor(Math.log10(size)))));
  }

  function signed(value) { return value > 0 ? '+' + number(value) : number(value); }

  function change(before, after, difference) {
    return number(before) + ' → ' + number(after) + ', ' + signed(difference);
  }

  function said(frame, whole) {
    const part = whole.difference
      ? '; ' + rounded(100 * frame.difference / whole.difference, 1, 1) + SPACE + '% of the difference' : '';
    return [frame.name, change(frame.before, frame.after, frame.difference) + part,
      'its own: ' + change(...frame.own)];
  }

  // A leaf's own instructions are all it has.
  function frameOf([name, parent, before, after, difference, ...own]) {
    return {name, parent, before, after, difference, own: own.length ? own : [before, after, difference]};
  }

  function colours(frames) {
    const most = Math.max(...frames.map(frame => Math.abs(frame.own[2]))) || 1;
    return frames.map(frame => {
      const strength = Math.round(STRENGTHS * Math.sqrt(Math.abs(frame.own[2]) / most));
      return strength ? (frame.own[2] > 0 ? 'p' : 'm') + strength : 'd0';
    });
  }

  function made(name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return element;
  }

  function bar(frame, y, x, width, colour, lines) {
    const element = made('svg', {class: 'f', x: x + '%', y, width: width + '%', height: 16,
      'data-f': [frame.parent, frame.before, frame.after].join(' ')});
    element.append(made('title', {}, lines.join('\n')), made('rect', {class: colour, width: '100%', height: 16}));
    return element;
  }

  function draw(svg, frames, remark) {
    const top = Number(svg.dataset.top), depths = [], next = [];
    frames.forEach((frame, at) => { depths[at] = frame.parent < 0 ? 0 : depths[frame.parent] + 1; });
    const bottom = top + ROW * Math.max(...depths);
    const shades = colours(frames);
    const bars = frames.map((frame, at) => {
      const share = frame.after / (frames[0].after || 1), start = frame.parent < 0 ? 0 : next[frame.parent];
      next[at] = start;
      if (frame.parent >= 0) next[frame.parent] += share;
      return bar(frame, bottom - ROW * depths[at], 100 * start, 100 * share, shades[at], said(frame, frames[0]));
    });
    svg.append(...bars);
    let y = bottom + ROW;
    const line = (kind, text) => svg.append(made('text', {class: kind, x: 8, y: y += LINE}, text));
    said(frames[0], frames[0]).forEach(text => line('said', text));
    if (remark) { y += 4; line('quiet', remark); }
    svg.setAttribute('height', y + LINE);
  }

  addEventListener('made', event => {
    const kept = event.target.querySelector(':scope > script.frames');
    if (!kept) return;
    const {title, remark, frames} = JSON.parse(kept.textContent);
    const svg = document.getElementById('flame').content.firstElementChild.cloneNode(true);
    svg.setAttribute('aria-label', title);
    draw(svg, frames.map(frameOf), remark);
    event.target.querySelector(':scope > .without').replaceWith(svg);
    kept.remove();
  });
})();
