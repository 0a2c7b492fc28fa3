'use strict';
// Two kernels are chosen; the table says how the second compares with the first in each workload.
(function () {
  const chooser = document.getElementById('chooser');
  if (!chooser) return;
  const data = JSON.parse(document.getElementById('pairs').textContent);
  const [first, second] = chooser.querySelectorAll('select');
  const changed = chooser.querySelector('input[type=checkbox]');
  const answer = document.getElementById('chosen');
  const result = document.getElementById('result');
  const NONE = '–', MINUS = '\u2212', SPACE = '\u00a0';
  const REVERSED = {b: 'w', w: 'b'};
  const TIMES = [[1, 's'], [1e-3, 'ms'], [1e-6, '\u00b5s'], [1e-9, 'ns']];

  function significant(value) {
    let text = Number(value.toPrecision(5)).toString();
    if (text.includes('e')) text = value.toPrecision(5);
    const [whole, rest] = text.split('.');
    return whole.replace(/\B(?=(\d{3})+$)/g, ',') + (rest ? '.' + rest : '');
  }

  function number(value) {
    if (value === null) return NONE;
    const large = Math.abs(value) >= 10000;
    const text = large ? Math.round(value).toLocaleString('en-US') : significant(value);
    return text.replace('-', MINUS);
  }

  // As ktrial.format.number_format writes times. seconds: what one of the line's unit is; null: it is no time.
  function quantity(value, seconds) {
    if (!value || seconds === null) return number(value);
    const rounded = Math.abs(Number(value.toPrecision(3))) * seconds * (1 + 1e-9);
    const [size, unit] = TIMES.find(([size]) => rounded >= size) || TIMES[TIMES.length - 1];
    const decimals = Math.max(0, 2 - Math.floor(Math.log10(rounded / size)));
    const shown = Math.abs(value) * seconds / size;
    const places = {minimumFractionDigits: decimals, maximumFractionDigits: decimals};
    const text = decimals <= 5 ? shown.toLocaleString('en-US', places) : Number(shown.toPrecision(3)).toString();
    return (value < 0 ? MINUS : '') + text + SPACE + unit;
  }

  function change(before, after, seconds) {
    if (before === null || after === null) return NONE;
    if (before <= 0) return after === before ? '0.00' + SPACE + '%' : '→' + SPACE + quantity(after, seconds);
    const value = (after / before - 1) * 100;
    const size = Math.abs(value);
    const text = size >= 1000 ? Math.round(size).toLocaleString('en-US') : size.toFixed(2);
    return (text === '0.00' ? '' : value > 0 ? '+' : MINUS) + text + SPACE + '%';
  }

  function verdictOf(line, i, j) {
    const [low, high] = [Math.min(i, j), Math.max(i, j)], count = data.kernels.length;
    const found = line.verdicts[low * count - low * (low + 1) / 2 + high - low - 1];
    return i < j ? found : REVERSED[found] || found;
  }

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function remarks(line) {
    const unit = line.unit === data.unit ? '' : line.unit;
    return [unit, line.alone && line.alone + ': ' + line.settings].filter(Boolean)
      .map(text => element('span', {className: 'remark'}, text));
  }

  function chip(letter) {
    const said = data.words[letter];
    return element('span', {className: 'chip ' + said.name},
      element('span', {className: 'symbol', ariaHidden: 'true'}, said.symbol), ' ' + said.word);
  }

  function row(line, i, j) {
    const letter = verdictOf(line, i, j);
    const name = line.page ? element('a', {href: line.page}, line.short) : element('bdi', {}, line.short);
    // In real time two numbers are not divided that need not be of common blocks.
    const ratio = letter === 't' ? NONE : change(line.values[i], line.values[j], line.seconds);
    return element('tr', {},
      element('th', {scope: 'row', title: line.trials}, name, ...remarks(line)),
      element('td', {className: 'number cell'}, ratio),
      element('td', {}, chip(letter)),
      element('td', {className: 'number'}, quantity(line.values[i], line.seconds)),
      element('td', {className: 'number'}, quantity(line.values[j], line.seconds)));
  }

  function heading(text, numeric) {
    return element('th', {scope: 'col', className: numeric ? 'number' : ''}, element('bdi', {}, text));
  }

  function table(lines, i, j) {
    const names = [data.kernels[i].name, data.kernels[j].name];
    const head = element('tr', {}, heading('Workload'), heading('Change', true), heading('Verdict'),
      heading(names[0], true), heading(names[1], true));
    const body = element('tbody', {}, ...lines.map(line => row(line, i, j)));
    return element('table', {className: 'pairs sorts'}, element('thead', {}, head), body);
  }

  function counted(lines, i, j) {
    const letters = lines.map(line => verdictOf(line, i, j));
    const parts = Object.keys(data.words).map(letter => [letters.filter(one => one === letter).length, letter]);
    return parts.filter(([count]) => count).map(([count, letter]) => count + ' ' + data.words[letter].word).join(', ');
  }

  function show() {
    const i = first.selectedIndex, j = second.selectedIndex;
    result.replaceChildren();
    if (i === j) {
      answer.textContent = 'Choose two different kernels.';
      return;
    }
    const both = data.lines.filter(line => line.values[i] !== null && line.values[j] !== null);
    const shown = changed.checked ? both.filter(line => !'es'.includes(verdictOf(line, i, j))) : both;
    const names = data.kernels[j].name + ' against ' + data.kernels[i].name;
    const workloads = new Set(both.map(line => line.short)).size;
    const rows = workloads === both.length ? 'workload' : 'row';
    answer.textContent = both.length
      ? names + ': of ' + both.length + ' ' + rows + (both.length > 1 ? 's ' : ' ') + counted(both, i, j) + '.'
      : names + ': no workload was measured with both on one machine with the same settings.';
    if (!shown.length) return;
    const box = element('div', {className: 'scroll', tabIndex: 0}, table(shown, i, j));
    box.setAttribute('role', 'region');
    box.setAttribute('aria-label', names);
    result.append(box);
    result.dispatchEvent(new CustomEvent('made', {bubbles: true}));
  }

  function keep() {
    address.keep('from', first.value);
    address.keep('to', second.value);
    address.keep('changed', changed.checked ? 'only' : '');
    show();
  }

  function placed(select, name, otherwise) {
    const place = data.kernels.findIndex(one => one.name === name);
    select.selectedIndex = place < 0 ? otherwise : place;
    return !name || place >= 0;
  }

  function restored() {
    const last = data.kernels.length - 1;
    const from = address.of('from'), to = address.of('to');
    const there = [placed(first, from, Math.max(0, last - 1)), placed(second, to, last)];
    if (first.selectedIndex === second.selectedIndex) first.selectedIndex = second.selectedIndex ? 0 : last;
    changed.checked = address.of('changed') === 'only';
    show();
    const missing = [from, to].filter((_, place) => !there[place]);
    if (missing.length) answer.textContent = 'Not on this page: ' + missing.join(', ') + '. ' + answer.textContent;
  }

  function swap() {
    [first.selectedIndex, second.selectedIndex] = [second.selectedIndex, first.selectedIndex];
    keep();
  }

  function moved(by) {
    const place = second.selectedIndex + by;
    if (place < 0 || place >= data.kernels.length) return;
    second.selectedIndex = place;
    keep();
  }

  const KEYS = {x: swap, '[': () => moved(-1), ']': () => moved(1)};
  addEventListener('keydown', event => {
    const typing = event.target.closest && event.target.closest('input, select, textarea');
    if (typing || event.ctrlKey || event.altKey || event.metaKey || !KEYS[event.key]) return;
    KEYS[event.key]();
  });
  chooser.hidden = false;
  for (const one of [first, second, changed]) one.addEventListener('change', keep);
  chooser.querySelector('button').addEventListener('click', swap);
  address.changed(restored);
  restored();
})();
