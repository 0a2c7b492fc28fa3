'use strict';
// What runs now, from the server's events: each says all that there is to know.
(function () {
  const box = document.getElementById('live');
  if (!box || !window.EventSource) return;
  const up = box.dataset.up;
  const own = Number(box.dataset.study || 0);

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function clock(moment) {
    return new Date(moment).toLocaleTimeString();
  }

  function counted(count, what) {
    return count + ' ' + what + (count === 1 ? '' : 's');
  }

  function verdict(one) {
    return element('li', {className: one.name},
      element('span', {className: 'symbol', ariaHidden: 'true'}, one.symbol), ' ',
      element('b', {}, String(one.count)), ' ' + one.word);
  }

  function doing(one) {
    const where = one.where ? ' on ' + one.where : '';
    return element('li', {}, element('bdi', {}, one.what + where), ', since ' + clock(one.since));
  }

  function run(one) {
    const who = one.user + '@' + one.host + ', process ' + one.process;
    const said = one.alive ? (one.stopping ? 'stopping' : 'running since ' + clock(one.started))
      : 'ended without a word; last heard of at ' + clock(one.heard);
    const parts = [element('p', {}, element('bdi', {}, who), ': ' + said)];
    if (one.alive && one.doing.length)
      parts.push(element('ul', {className: 'doing'}, ...one.doing.map(doing)));
    return parts;
  }

  function progress(one) {
    const made = element('progress', {max: Math.max(1, one.planned), value: one.finished});
    made.setAttribute('aria-label', 'Progress of ' + one.name);
    const left = one.left ? ', about ' + one.left + ' left' : '';
    const failed = one.failed ? ', ' + one.failed + ' failed' : '';
    return [made, element('p', {className: 'facts'},
      one.finished + ' of ' + counted(one.planned, 'trial') + ' ended' + failed + left)];
  }

  function more(one) {
    if (one.id !== own || one.finished === Number(box.dataset.trials)) return [];
    const shown = 'This page was made from ' + counted(Number(box.dataset.trials), 'trial') + '. ';
    const button = element('button', {type: 'button'}, 'Show what has ended since');
    button.addEventListener('click', () => location.reload());
    return [element('p', {}, shown, button)];
  }

  function study(one) {
    const name = element('bdi', {}, one.name);
    const title = one.finished && one.id !== own ? element('a', {href: up + one.page}, name) : name;
    const made = element('div', {className: 'one'}, element('h2', {}, (one.alive ? 'Running: ' : 'Not running: '), title),
      ...progress(one));
    made.dataset.study = one.id;
    if (one.verdicts.length) {
      const list = element('ul', {className: 'counts'}, ...one.verdicts.map(verdict));
      list.setAttribute('aria-label', 'Verdicts so far');
      made.append(element('p', {}, 'Verdicts so far, of ' + one.counted + ':'), list);
    }
    if (one.answer) made.append(element('p', {}, 'So far: ', element('bdi', {}, one.answer)));
    made.append(...one.runs.flatMap(run), ...more(one));
    return made;
  }

  function ended() {
    const button = element('button', {type: 'button'}, 'Show the result');
    button.addEventListener('click', () => location.reload());
    const made = element('div', {className: 'one'}, element('p', {}, 'It has ended. ', button));
    made.dataset.study = 'ended';
    return made;
  }

  let ran = false;
  function show(event) {
    const all = JSON.parse(event.data).running;
    const shown = own ? all.filter(one => one.id === own) : all;
    box.replaceChildren(...shown.map(study), ...(ran && !shown.length ? [ended()] : []));
    box.hidden = !box.children.length;
    ran = ran || shown.some(one => one.alive);
  }

  // A browser has few connections for one server: a page that nobody sees leaves its own to the others.
  let source = null;
  function follow() {
    if (document.hidden && source) {
      source.close();
      source = null;
    } else if (!document.hidden && !source) {
      source = new EventSource(up + 'events');
      source.addEventListener('running', show);
    }
  }

  document.addEventListener('visibilitychange', follow);
  follow();
})();
