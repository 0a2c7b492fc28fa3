'use strict';
// Zoom, search and details of the flame graphs in this document; without it they are pictures with tooltips.
(function () {
  const SVG = 'http://www.w3.org/2000/svg';
  const BEFORE = 0, AFTER = 1;

  function number(value) {
    const digits = Math.abs(value) >= 10000 ? {maximumFractionDigits: 0} : {maximumSignificantDigits: 5};
    return value.toLocaleString('en', digits);
  }

  function pattern(text, input) {
    try {
      input.classList.remove('bad');
      return new RegExp(text, 'i');
    } catch (error) {
      input.classList.add('bad');
      return null;
    }
  }

  function live(svg) {
    const frames = [...svg.querySelectorAll('.f')].map(element => {
      const [parent, before, after] = element.dataset.f.split(' ').map(Number);
      const said = element.querySelector('title').textContent.split('\n');
      return {element, parent, values: [before, after], said, text: element.querySelector('text')};
    });
    const details = [...svg.querySelectorAll('.said')];
    const input = svg.querySelector('input');
    const whole = svg.querySelector('.whole');
    const sides = svg.querySelector('.sides');
    let side = Number(svg.dataset.side), focus = 0, column = 0, resting = details.map(line => line.textContent);

    function say(lines) {
      details.forEach((line, number) => { line.textContent = lines[number] || ''; });
    }

    function arrange() {
      const base = frames[focus].values[side];
      const ancestors = new Set();
      for (let at = frames[focus].parent; at >= 0; at = frames[at].parent) ancestors.add(at);
      const next = [], inside = [];
      frames.forEach((frame, index) => {
        const above = ancestors.has(index), top = index === focus;
        inside[index] = top || Boolean(inside[frame.parent]);
        const value = frame.values[side];
        const start = above || top ? 0 : next[frame.parent];
        const share = above || top ? 1 : value / base;
        const shown = (above || inside[index]) && (share > 0 || top);
        if (inside[index] && !top) next[frame.parent] = start + share;
        next[index] = start;
        frame.share = shown ? share : 0;
        frame.element.classList.toggle('above', above);
        frame.element.style.display = shown ? '' : 'none';
        if (shown) {
          frame.element.setAttribute('x', 100 * start + '%');
          frame.element.setAttribute('width', 100 * share + '%');
        }
      });
      whole.hidden = focus === 0;
      label();
    }

    function label() {
      const width = svg.getBoundingClientRect().width;
      if (!width) return;
      if (!column) column = columnWidth();
      for (const frame of frames) {
        const fits = Math.floor((frame.share * width - 5) / column);
        const name = frame.said[0];
        const shown = fits < 2 ? '' : name.length <= fits ? name : name.slice(0, fits - 1) + '…';
        if (!frame.text && shown) frame.text = addText(frame.element);
        if (frame.text && frame.text.textContent !== shown) frame.text.textContent = shown;
      }
    }

    function addText(element) {
      const text = document.createElementNS(SVG, 'text');
      text.setAttribute('x', 3);
      text.setAttribute('y', 12);
      return element.appendChild(text);
    }

    function columnWidth() {
      const ruler = svg.appendChild(document.createElementNS(SVG, 'text'));
      ruler.setAttribute('class', 'label');
      ruler.textContent = 'm'.repeat(20);
      const width = ruler.getComputedTextLength() / 20;
      ruler.remove();
      return width || 6.7;
    }

    function zoom(index) {
      focus = frames[index].values[side] > 0 ? index : 0;
      arrange();
    }

    function search() {
      const sought = input.value && pattern(input.value, input);
      const sums = [0, 0], covered = [];
      let count = 0;
      frames.forEach((frame, index) => {
        const hit = Boolean(sought) && index > 0 && sought.test(frame.said[0]);
        frame.element.classList.toggle('hit', hit);
        const under = index > 0 && covered[frame.parent];
        if (hit) count++;
        if (hit && !under) frame.values.forEach((value, one) => { sums[one] += value; });
        covered[index] = hit || under;
      });
      if (!input.value) input.classList.remove('bad');
      say(sought ? found(count, sums) : resting);
    }

    function found(count, sums) {
      const shares = sums.map((sum, one) => number(sum) + ' (' +
        (frames[0].values[one] ? (100 * sum / frames[0].values[one]).toFixed(1) : '0') + ' %)');
      const differs = svg.dataset.kind === 'difference';
      return [count + (count === 1 ? ' frame' : ' frames') + ' found',
        differs ? shares.join(' → ') : shares[AFTER], ''];
    }

    frames.forEach((frame, index) => {
      frame.element.addEventListener('click', () => { say(frame.said); zoom(index); });
      frame.element.addEventListener('mouseenter', () => say(frame.said));
      frame.element.addEventListener('mouseleave', () => {
        if (!matchMedia('(hover: none)').matches) input.value ? search() : say(resting);
      });
    });
    input.addEventListener('input', search);
    whole.addEventListener('click', () => zoom(0));
    if (sides) {
      sides.addEventListener('click', () => {
        side = side === AFTER ? BEFORE : AFTER;
        sides.textContent = sides.dataset.texts.split('|')[side];
        zoom(focus);
      });
    }
    if (svg === document.documentElement) {
      addEventListener('keydown', event => {
        if (event.key === 'F3' || ((event.ctrlKey || event.metaKey) && event.key === 'f')) {
          event.preventDefault();
          input.focus();
          input.select();
        } else if (event.key === 'Escape') {
          input.value = '';
          search();
          zoom(0);
        }
      });
    }
    svg.classList.add('live');
    new ResizeObserver(label).observe(svg);
    arrange();
  }

  document.querySelectorAll('svg.flame').forEach(live);
  // Those that a page draws later.
  addEventListener('made', event => event.target.querySelectorAll('svg.flame:not(.live)').forEach(live));
})();
