// The server's figures as they change: /metrics, once a second while they are looked at.

import { h, svg } from './dom.js';
import { askText } from './server.js';

const kPoints = 60;

/**
 * Prometheus' text format, as far as this server writes it.
 * @return {Map<string, number>} buckets of histograms as "name_bucket{le=\"0.1\"}"
 */
export function parseMetrics(text) {
  const values = new Map();
  for (const line of text.split('\n')) {
    const space = line.lastIndexOf(' ');
    if (line.startsWith('#') || space < 0) continue;
    values.set(line.slice(0, space).replace(/^inlay_/, ''), Number(line.slice(space + 1)));
  }
  return values;
}

/** The median of a histogram: the bound of the bucket that has it; NaN where there is none. */
export function medianOf(values, name) {
  const half = values.get(`${name}_count`) / 2;
  if (!(half > 0)) return NaN;
  for (const [key, count] of values) {
    if (key.startsWith(`${name}_bucket`) && count >= half) return Number(/le="([^"]+)"/.exec(key)[1].replace('+Inf', 'Infinity'));
  }
  return NaN;
}

const bytes = (value) => (value >= 2 ** 30 ? `${(value / 2 ** 30).toFixed(2)} GiB` : `${(value / 2 ** 20).toFixed(1)} MiB`);
const seconds = (value) => (Number.isNaN(value) ? '–' : value < 1 ? `≤ ${Math.round(value * 1000)} ms` : `≤ ${value} s`);

export class Figures {
  constructor(root) {
    this.root = root;
    this.samples = [];
    this.looks = 0;  // how often somebody began or ended to look
  }

  /** Begins or ends to look. */
  watch(on) {
    clearTimeout(this.timer);
    ++this.looks;
    if (on) this.sample(this.looks);
  }

  async sample(look) {
    const started = performance.now();
    try {
      const values = parseMetrics(await askText('/metrics'));
      this.add(values, started / 1000);
      this.draw(values);
    } catch (error) {
      this.root.replaceChildren(h('p.note', {}, error.message));
    }
    // A reply may come when nobody looks any more.
    if (look === this.looks) this.timer = setTimeout(() => this.sample(look), document.hidden ? 5000 : 1000);
  }

  add(values, time) {
    const before = this.last;
    this.last = { values, time };
    // A server that has started again counts anew.
    const rate = (name) => Math.max(0, (values.get(name) - before.values.get(name)) / (time - before.time));
    if (before === undefined) return;
    this.samples.push({ generated: rate('generated_tokens_total'), computed: rate('computed_tokens_total') });
    if (this.samples.length > kPoints) this.samples.shift();
  }

  draw(values) {
    const get = (name) => values.get(name) ?? 0;
    const now = this.samples[this.samples.length - 1] ?? { generated: 0, computed: 0 };
    const share = get('prompt_tokens_total') === 0 ? 0 : get('cached_tokens_total') / get('prompt_tokens_total');
    const rows = [
      ['Running / waiting', `${get('answers_running')} / ${get('answers_waiting')}`],
      ['Tokens in the last step', get('batch_tokens')],
      ['First token, median', seconds(medianOf(values, 'first_token_seconds'))],
      ['Between tokens, median', seconds(medianOf(values, 'between_tokens_seconds'))],
      ['Prompt tokens reused', `${Math.round(100 * share)} %`],
      ['Stored prefixes', `${get('snapshots')} (${bytes(get('snapshot_bytes'))})`],
      ['Answers / failed', `${get('answers_total')} / ${get('answers_failed_total')}`],
      ['Paused for memory', get('pauses_total')],
      ['Connections', get('connections')],
    ];
    this.root.replaceChildren(
      this.curve('Generated', 'generated', now.generated),
      this.curve('Prompts read', 'computed', now.computed),
      meter('Memory in use', get('used_bytes'), get('memory_bytes')),
      meter('Memory promised', get('reserved_bytes'), get('memory_bytes')),
      h('dl', {}, rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, String(value))])));
  }

  // The last minute of a rate, with its value now.
  curve(name, key, now) {
    const most = Math.max(1, ...this.samples.map((sample) => sample[key]));
    const points = this.samples.map((sample, i) =>
      `${(200 * (i + kPoints - this.samples.length)) / (kPoints - 1)},${39 - (37 * sample[key]) / most}`);
    const picture = svg('svg', { viewBox: '0 0 200 40', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    picture.append(svg('polyline', { points: points.join(' '), class: 'curve' }));
    return h('div.figure', { dataset: { figure: key } },
      h('div', {}, h('span', {}, name), h('strong', {}, `${now.toFixed(now < 10 ? 1 : 0)} tokens/s`)), picture);
  }
}

function meter(name, value, most) {
  const share = most === 0 ? 0 : Math.min(1, value / most);
  return h('div.figure', {}, h('div', {}, h('span', {}, name), h('span', {}, `${bytes(value)} of ${bytes(most)}`)),
    h('meter', { min: 0, max: 1, value: share, 'aria-label': name }));
}
