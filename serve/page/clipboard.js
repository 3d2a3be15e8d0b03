// The clipboard.

import { h, toast } from './dom.js';

/** Copies a text, and says so. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers have no clipboard object where the page comes from another machine without https.
    if (!copyAsSelection(text)) return void toast('This browser does not let the page copy.');
  }
  toast('Copied.');
}

function copyAsSelection(text) {
  const focused = document.activeElement;
  const area = h('textarea.hidden', { value: text, readOnly: true });
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  focused?.focus();
  return done;
}
