'use strict';
// What is shown stands in the page's address, behind `#?`: who follows a link to it sees the same.
const address = (function () {
  const MARK = '#?';
  let own = '';

  function parts() {
    return new URLSearchParams(location.hash.startsWith(MARK) ? location.hash.slice(MARK.length) : '');
  }

  return {
    of(key) { return parts().get(key) || ''; },
    keep(key, value) {
      const all = parts();
      if (value) all.set(key, value);
      else all.delete(key);
      const text = all.toString();
      if (!text && !location.hash.startsWith(MARK)) return;
      own = MARK + text;
      history.replaceState(null, '', location.href.split('#')[0] + own);
    },
    // Somebody else changed it: by typing, or with the browser's own buttons.
    changed(what) {
      addEventListener('hashchange', () => { if (location.hash.startsWith(MARK) && location.hash !== own) what(); });
    },
  };
})();
