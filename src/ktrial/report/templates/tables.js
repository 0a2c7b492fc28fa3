'use strict';
// Tables sort by a click on a heading, and are filtered by what is typed; boxes that scroll sideways say so.
(function () {
  const FEWEST_TO_FILTER = 10;
  const ORDERS = ['ascending', 'descending'];

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function number(text) {
    if (/→/.test(text)) return Infinity;
    const match = text.replace(/\u2212/g, '-').replace(/,/g, '').match(/[-+]?(\d+(\.\d+)?(e[-+]?\d+)?|∞)/);
    return match ? Number(match[0].replace('∞', 'Infinity')) : NaN;
  }

  function valueOf(row, place) {
    const cell = row.cells[place];
    if (!cell) return '';
    const text = cell.firstChild ? cell.textContent.trim() : '';
    return cell.matches('.number, .cell') ? number(text) : text;
  }

  function compared(a, b) {
    if (typeof a === 'string') return a.localeCompare(b, 'en', {numeric: true});
    return a === b ? 0 : a - b;
  }

  function missing(value) { return value === '' || Number.isNaN(value); }

  // Rows below a heading stay with it: a block is a heading with its rows, or one row.
  function blocksOf(rows) {
    const blocks = [];
    for (const row of rows) {
      const under = row.matches('.part') && blocks.length;
      if (under) blocks[blocks.length - 1].push(row);
      else blocks.push([row]);
    }
    return blocks;
  }

  function arranged(blocks, place, order) {
    if (order < 0) return blocks.flat();
    const sign = order ? -1 : 1;
    const key = block => {
      const values = block.map(row => row.matches('.group') ? NaN : valueOf(row, place));
      const there = values.filter(value => !missing(value)).sort((a, b) => sign * compared(a, b));
      return there.length ? there[0] : NaN;
    };
    const by = (items, value) => items.map(item => [value(item), item]).sort(([a], [b]) =>
      missing(a) || missing(b) ? missing(a) - missing(b) : sign * compared(a, b)).map(([, item]) => item);
    const inside = block => block[0].matches('.group')
      ? [block[0], ...by(block.slice(1), row => valueOf(row, place))] : block;
    const first = block => place === 0 ? block[0].cells[0].textContent.trim() : key(block);
    return by(blocks.map(inside), first).flat();
  }

  // A table's part of the address. What a closed section holds comes and goes, and has none.
  function partOf(table) {
    const name = table.className.split(' ')[0];
    if (!name || table.closest('details')) return {of: () => '', keep() {}};
    return {of: key => address.of(name + '.' + key), keep: (key, value) => address.keep(name + '.' + key, value)};
  }

  function sorting(table, kept) {
    const body = table.tBodies[0];
    const blocks = blocksOf(body.rows);
    const headings = [...table.tHead.rows[0].cells];
    const buttons = headings.map(heading => {
      const button = element('button', {type: 'button', className: 'sort'}, ...heading.childNodes);
      heading.append(button);
      return button;
    });
    let sorted = -1, order = -1;
    function sort(place, wanted) {
      [sorted, order] = wanted < 0 ? [-1, -1] : [place, wanted];
      kept.keep('sort', order < 0 ? '' : headingOf(place) + ' ' + ORDERS[order]);
      headings.forEach((heading, at) => {
        if (at === sorted) heading.setAttribute('aria-sort', ORDERS[order]);
        else heading.removeAttribute('aria-sort');
      });
      body.append(...arranged(blocks, place, order));
    }
    // Numbers begin with the largest, names with the first; a third click brings the rows back.
    const headingOf = place => headings[place].textContent.trim();
    function restored() {
      const [, title, word] = kept.of('sort').match(/^(.*) (\S+)$/) || [];
      const place = headings.findIndex((_, at) => headingOf(at) === title);
      if (place >= 0) sort(place, ORDERS.indexOf(word));
    }
    buttons.forEach((button, place) => button.addEventListener('click', () => {
      const start = headings[place].matches('.number') ? 1 : 0;
      sort(place, place !== sorted ? start : order === start ? 1 - start : -1);
    }));
    restored();
    address.changed(restored);
    return {headings, sort};
  }

  function filtering(table, input, count, kept) {
    const blocks = blocksOf(table.tBodies[0].rows);
    const rows = blocks.flat().filter(row => !row.matches('.group'));
    const said = row => [row.textContent, ...[...row.cells].map(cell => cell.className)].join(' ').toLowerCase();
    function filter() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const block of blocks) {
        const heading = block[0].matches('.group') ? said(block[0]) : '';
        for (const row of block) {
          const text = heading + ' ' + said(row);
          row.hidden = !words.every(word => text.includes(word));
        }
        if (heading) block[0].hidden = block.slice(1).every(row => row.hidden);
      }
      const shown = rows.filter(row => !row.hidden).length;
      count.textContent = words.length ? shown + ' of ' + rows.length : '';
      kept.keep('filter', input.value.trim());
    }
    function restored() {
      input.value = kept.of('filter');
      filter();
    }
    input.addEventListener('input', filter);
    input.addEventListener('keydown', event => {
      if (event.key !== 'Escape') return;
      input.value = '';
      filter();
    });
    if (kept.of('filter')) restored();
    address.changed(restored);
  }

  // A narrow page sets rows as blocks and hides the headings: there the order is chosen from a list.
  function chooser(headings, sort) {
    const options = [element('option', {value: '0 -1'}, 'as they are')];
    headings.forEach((heading, place) => {
      const title = heading.textContent.trim();
      for (const [order, word] of [[1, 'down'], [0, 'up']])
        options.push(element('option', {value: place + ' ' + order}, title + ', ' + word));
    });
    const select = element('select', {}, ...options);
    select.addEventListener('change', () => sort(...select.value.split(' ').map(Number)));
    return element('label', {className: 'order'}, 'Order ', select);
  }

  function tools(table) {
    const kept = partOf(table);
    const {headings, sort} = sorting(table, kept);
    if (table.tBodies[0].rows.length < FEWEST_TO_FILTER && !kept.of('filter')) return;
    const input = element('input', {type: 'search', placeholder: 'Filter rows ( / ): a name, a verdict'});
    input.setAttribute('aria-label', 'Filter rows');
    const count = element('output', {});
    const stacks = table.getAttribute('role') === 'table';
    const bar = element('div', {className: 'tools'}, input, count, ...(stacks ? [chooser(headings, sort)] : []));
    (table.closest('.scroll') || table).before(bar);
    filtering(table, input, count, kept);
  }

  function cue(box) {
    const more = () => {
      box.classList.toggle('more', box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    };
    box.addEventListener('scroll', more, {passive: true});
    new ResizeObserver(more).observe(box);
  }

  addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.target.closest?.('input, select, textarea')) return;
    const input = [...document.querySelectorAll('input[type=search]')].find(one => one.getClientRects().length);
    if (!input) return;
    event.preventDefault();
    input.focus();
  });

  const done = new WeakSet();
  function all(part) {
    for (const [which, what] of [['table.sorts', tools], ['.scroll', cue]])
      for (const one of part.querySelectorAll(which)) if (!done.has(one)) { done.add(one); what(one); }
  }
  addEventListener('made', event => all(event.target));
  all(document);
})();
