// SPDX-License-Identifier: Apache-2.0
//
// The status page. It follows one stream of events (status/events), which first tells all Services and then those
// that change; what is asked for beside it is the way of a packet and a picture, when a person opens a Service.
// Nothing here changes anything. What comes from the cluster goes into the document as text only.
//
// Only the rows in sight are in the document, so ten thousand services cost as much as thirty.
'use strict';

const ROW = 34, SPARE = 8, POINTS = 120, TROUBLES = 20, RETRY_MS = 5000, CHART_MS = 2000, BUSY_MS = 1000, BUSY_TIMES = 5;
const FOLD = 200, FOLD_W = 210, FOLD_H = 74;
const SVG = 'http://www.w3.org/2000/svg';
const $ = id => document.getElementById(id);
const state = {
	services: new Map(), // "namespace/name" -> ids of its ports
	ports: new Map(),    // id -> port, as the daemon sends it, with `hay` to search in
	loading: null,       // services told since the stream began; null: all were
	shown: [],           // ids, found and sorted
	places: new Map(),   // id -> its place among them
	chosen: null,        // id of the marked row
	opened: null,        // id of the one whose way is shown
	sort: {by: 'id', down: false},
	traffic: null,       // totals as of the last time, to work out rates
	rates: new Map(),
	plots: {sync: [], conntrack: []},
	troubles: new Map(),
};

const columns = [
	{by: 'id', title: 'Service', text: port => port.id},
	{by: 'address', title: 'Addresses', name: 'wide address', text: addressText},
	{by: 'used', title: 'Endpoints', text: port => `${port.used} / ${port.endpoints}`},
	{by: 'rate', title: 'New/s', name: 'wide rate', text: rateText},
	{by: 'changed', title: 'Changed', name: 'wide', text: port => port.changed ? ago(port.changed) : ''},
];

function addressText(port) {
	const more = port.more ? ` and ${port.more} more` : '';
	return port.entries.map(entry => entry[0]).join(' ') + more;
}

function rateText(port) {
	const rate = state.rates.get(port.id);
	return rate === undefined ? '' : rate >= 10 ? rate.toFixed(0) : rate.toFixed(1);
}

function ago(seconds) {
	const gone = Math.max(0, Date.now() / 1000 - seconds);
	if (gone < 60) return `${Math.floor(gone)} s`;
	if (gone < 3600) return `${Math.floor(gone / 60)} min`;
	if (gone < 86400) return `${Math.floor(gone / 3600)} h`;
	return `${Math.floor(gone / 86400)} d`;
}

function element(name, properties = {}, ...children) {
	const made = Object.assign(document.createElement(name), properties);
	made.append(...children);
	return made;
}

function setText(id, text) {
	const at = $(id);
	if (at.textContent !== text) at.textContent = text;
}

// --- What there is ---

function forget(key) {
	for (const id of state.services.get(key) || []) state.ports.delete(id);
	state.services.delete(key);
}

function remember(service, seen) {
	forget(service.service);
	if (!service.ports.length) return;
	state.services.set(service.service, service.ports.map(port => port.id));
	for (const port of service.ports) {
		port.service = service.service;
		port.changed = service.changed;
		port.seen = seen;
		port.hay = `${port.id} ${service.type} ${port.protocol} ${addressText(port)}`.toLowerCase();
		state.ports.set(port.id, port);
	}
}

function takeServices(list) {
	const seen = state.loading ? 0 : Date.now();
	for (const service of list) {
		remember(service, seen);
		if (state.loading) state.loading.add(service.service);
	}
	drawSoon(true);
	if (state.loading || !list.length) return;
	askForChart();
	const opened = state.opened;
	if (!opened) return;
	if (!state.ports.has(opened)) shut();
	else if (list.some(service => service.service === state.ports.get(opened).service)) showService(opened);
}

// A new stream tells all again; what it did not tell is gone.
function allTold() {
	for (const key of [...state.services.keys()]) if (!state.loading.has(key)) forget(key);
	state.loading = null;
	drawSoon(true);
	if (state.opened && state.ports.has(state.opened)) showService(state.opened);
	else showNode();
}

// --- The list ---

const sortKeys = {
	id: port => port.id,
	address: port => port.entries.length ? port.entries[0][0] : '',
	used: port => port.used,
	rate: port => -(state.rates.get(port.id) || 0),
	changed: port => -port.changed,
};

function find() {
	const words = $('search').value.toLowerCase().split(/\s+/).filter(Boolean);
	const key = sortKeys[state.sort.by], sign = state.sort.down ? -1 : 1;
	const found = [];
	for (const port of state.ports.values())
		if (words.every(word => port.hay.includes(word))) found.push([key(port), port.id]);
	found.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0) * sign);
	state.shown = found.map(pair => pair[1]);
	state.places = new Map(state.shown.map((id, index) => [id, index]));
	setText('found', `${state.shown.length} of ${state.ports.size}`);
	$('space').style.height = `${state.shown.length * ROW}px`;
	$('table').setAttribute('aria-rowcount', String(state.shown.length + 1));
	draw();
}

function makeRow() {
	const row = element('div', {className: 'row'});
	row.setAttribute('role', 'row');
	for (const column of columns) {
		const cell = element('span', {className: column.name || ''});
		cell.setAttribute('role', 'gridcell');
		row.append(cell);
	}
	return row;
}

function setAttribute(at, name, value) {
	if (at.getAttribute(name) !== value) at.setAttribute(name, value);
}

function fillRow(row, id, index) {
	const port = state.ports.get(id);
	if (!port) return; // it went, and what is found will be worked out again in a moment
	setAttribute(row, 'id', `row-${index}`);
	setAttribute(row, 'data-id', id);
	setAttribute(row, 'aria-selected', String(id === state.chosen));
	setAttribute(row, 'aria-rowindex', String(index + 2));
	columns.forEach((column, i) => {
		const cell = row.children[i], text = column.text(port);
		if (cell.textContent !== text) cell.textContent = cell.title = text;
	});
	row.children[2].classList.toggle('bad', port.used === 0);
	row.classList.toggle('opened', id === state.opened);
	row.classList.toggle('fresh', Date.now() - port.seen < 2000);
}

// Rows are filled anew and never replaced: one that went away between the press and the release of a mouse button would
// take the click with it.
function draw() {
	const list = $('list'), rows = $('rows');
	const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
	const last = Math.min(state.shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
	rows.style.transform = `translateY(${first * ROW}px)`;
	while (rows.children.length > Math.max(0, last - first)) rows.lastChild.remove();
	while (rows.children.length < last - first) rows.append(makeRow());
	for (let i = first; i < last; i++) fillRow(rows.children[i - first], state.shown[i], i);
	const at = state.places.get(state.chosen);
	if (at >= first && at < last) $('table').setAttribute('aria-activedescendant', `row-${at}`);
	else $('table').removeAttribute('aria-activedescendant');
}

// Any number of changes before the next picture of the screen are one. anew: what is found may differ.
const drawing = {asked: false, anew: false};
function drawSoon(anew) {
	drawing.anew = drawing.anew || anew;
	if (drawing.asked) return;
	drawing.asked = true;
	requestAnimationFrame(() => {
		const all = drawing.anew;
		drawing.asked = drawing.anew = false;
		if (all) find(); else draw();
	});
}

function choose(index) {
	if (!state.shown.length) return;
	index = Math.min(Math.max(index, 0), state.shown.length - 1);
	state.chosen = state.shown[index];
	const list = $('list');
	if (index * ROW < list.scrollTop) list.scrollTop = index * ROW;
	if ((index + 1) * ROW > list.scrollTop + list.clientHeight) list.scrollTop = (index + 1) * ROW - list.clientHeight;
	draw();
}

function sortBy(column) {
	state.sort = {by: column.by, down: state.sort.by === column.by && !state.sort.down};
	drawHeads();
	find();
}

function drawHeads() {
	const heads = $('heads'), focused = [...heads.children].findIndex(head => head.contains(document.activeElement));
	heads.replaceChildren(...columns.map(column => {
		const sorted = state.sort.by === column.by;
		const arrow = sorted ? (state.sort.down ? ' \u2193' : ' \u2191') : '';
		const button = element('button', {type: 'button', textContent: column.title + arrow, onclick: () => sortBy(column)});
		button.setAttribute('aria-label', `Sort by ${column.title}`);
		const head = element('span', {className: column.name || ''}, button);
		head.classList.remove('address');
		head.setAttribute('role', 'columnheader');
		head.setAttribute('aria-sort', sorted ? (state.sort.down ? 'descending' : 'ascending') : 'none');
		return head;
	}));
	if (focused >= 0) heads.children[focused].firstChild.focus();
}

// --- Pictures ---

// Of a picture only what a chart is made of gets into the document, whatever came.
const DRAWN = new Set(['svg', 'g', 'title', 'desc', 'defs', 'marker', 'path', 'rect', 'text']);
const SAID = new Set(['x', 'y', 'width', 'height', 'rx', 'd', 'class', 'viewBox', 'role', 'id', 'aria-labelledby', 'marker-end',
	'refX', 'refY', 'markerWidth', 'markerHeight', 'orient', 'fill', 'data-service']);

function copyDrawing(from) {
	const made = document.createElementNS(SVG, from.localName);
	for (const attribute of from.attributes)
		if (SAID.has(attribute.name)) made.setAttribute(attribute.name, attribute.value);
	for (const child of from.childNodes) {
		if (child.nodeType === Node.TEXT_NODE) made.append(child.data);
		else if (child.nodeType === Node.ELEMENT_NODE && DRAWN.has(child.localName)) made.append(copyDrawing(child));
	}
	return made;
}

// 503: the daemon has more to do than to answer pages.
async function ask(path) {
	for (let times = 1; ; times++) {
		const answer = await fetch(path);
		if (answer.status !== 503 || times === BUSY_TIMES) return answer;
		await new Promise(resolve => setTimeout(resolve, BUSY_MS));
	}
}

async function drawChart(query, stillWanted) {
	try {
		const answer = await ask(`status/chart.svg${query}`);
		if (!answer.ok) throw new Error(`no chart: ${answer.status}`);
		// its own style would be refused, and be complained about; page.css has the same
		const text = (await answer.text()).replace(/<style>[^]*?<\/style>/, '');
		const picture = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
		if (!stillWanted()) return;
		if (picture.localName !== 'svg') throw new Error('no chart: it cannot be read');
		$('chart').replaceChildren(copyDrawing(picture));
	} catch (error) {
		if (stillWanted()) $('chart').textContent = String(error.message);
	}
}

// More services than a picture has room for: a box for each namespace, from what is known here anyway.
function tally() {
	const spaces = new Map();
	for (const [key, ids] of state.services) {
		const name = key.slice(0, key.indexOf('/'));
		if (!spaces.has(name)) spaces.set(name, {name, services: 0, ports: 0, endpoints: 0, without: 0});
		const space = spaces.get(name);
		space.services++;
		for (const port of ids.map(id => state.ports.get(id))) {
			space.ports++;
			space.endpoints += port.used;
			space.without += port.used === 0;
		}
	}
	return [...spaces.values()].sort((a, b) => a.name < b.name ? -1 : 1);
}

function shape(name, attributes, ...children) {
	const made = document.createElementNS(SVG, name);
	for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
	made.append(...children);
	return made;
}

function drawNamespace(space, x, y) {
	const lines = [[space.name, 'title'], [`${space.services} services`, ''],
		[`${space.ports} ports, ${space.endpoints} endpoints`, 'small'],
		[space.without ? `${space.without} without an endpoint` : '', 'small']];
	const box = shape('g', {class: space.without ? 'refused' : 'namespace', 'data-namespace': space.name},
		shape('title', {}, lines.map(line => line[0]).filter(Boolean).join(', ')),
		shape('rect', {x, y, width: FOLD_W, height: FOLD_H, rx: 6}),
		...lines.map(([text, name], i) => shape('text', {x: x + 9, y: y + 18 + 15 * i, class: name},
			text.length > 30 ? `${text.slice(0, 29)}\u2026` : text)));
	box.addEventListener('click', () => search(`${space.name}/`));
	return box;
}

function drawFolded() {
	const spaces = tally(), across = Math.max(1, Math.floor($('chart').clientWidth / (FOLD_W + 10)));
	const width = across * (FOLD_W + 10), height = Math.ceil(spaces.length / across) * (FOLD_H + 10);
	const words = `${state.services.size} services in ${spaces.length} namespaces`;
	$('chart').replaceChildren(element('p', {className: 'small', textContent: `${words}. Open one to see its endpoints.`}),
		shape('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': words},
			...spaces.map((space, i) => drawNamespace(space, i % across * (FOLD_W + 10) + 1, Math.floor(i / across) * (FOLD_H + 10) + 1))));
}

function showNode() {
	setText('details-title', 'This node');
	$('explain').hidden = $('way').hidden = true;
	if (state.services.size > FOLD) drawFolded();
	else drawChart('', () => state.opened === null);
}

// The picture of the node is drawn again at most every other second while things change.
function askForChart() {
	if (askForChart.asked || state.opened) return;
	askForChart.asked = true;
	setTimeout(() => {
		askForChart.asked = false;
		if (!state.opened && !document.hidden) showNode();
	}, CHART_MS);
}

// --- The way of a packet ---

async function fetchJson(path) {
	const answer = await ask(path);
	const body = await answer.json();
	if (!answer.ok) throw new Error(body.error || `${path}: ${answer.status}`);
	return body;
}

function fillEntries(port) {
	const kept = $('entry').value;
	$('entry').replaceChildren(...port.entries.map(([address, kind, destination]) =>
		element('option', {value: destination, textContent: `${address} (${kind})`})));
	if (port.entries.some(entry => entry[2] === kept)) $('entry').value = kept;
}

function showService(id) {
	const port = state.ports.get(id);
	setText('details-title', id);
	fillEntries(port);
	$('explain').hidden = $('way').hidden = false;
	drawSoon(false);
	return Promise.all([explain(), drawChart(`?service=${encodeURIComponent(port.service)}`, () => state.opened === id)]);
}

function open(id) {
	if (!state.ports.has(id)) return;
	state.opened = id;
	document.body.classList.add('with-service');
	$('chart').replaceChildren();
	$('details').scrollTop = 0;
	$('details').focus();
	showService(id);
}

function shut() {
	state.opened = null;
	document.body.classList.remove('with-service', 'with-chart');
	$('table').focus();
	drawSoon(false);
	showNode();
}

async function explain() {
	const id = state.opened, destination = $('entry').value;
	if (!destination) { setText('summary', 'This port has no address here.'); return; }
	const port = state.ports.get(id), from = $('client').value;
	const stillWanted = () => state.opened === id && $('entry').value === destination && $('client').value === from;
	setText('command', `portolan explain ${destination} --from ${from} --proto ${port.protocol}`);
	try {
		const query = new URLSearchParams({dest: destination, from, proto: port.protocol});
		const way = await fetchJson(`status/explain?${query}`);
		if (stillWanted()) showWay(way);
	} catch (error) {
		if (!stillWanted()) return;
		setText('summary', String(error.message));
		$('steps').replaceChildren();
		$('backends').tBodies[0].replaceChildren();
	}
}

function stepText(step) {
	const target = step.target ? ` ${step.target}` : '';
	const note = step.note ? `, ${step.note}` : '';
	return `${step.hook}, ${step.chain}: ${step.effect}${target}${note}`;
}

function showWay(way) {
	setText('summary', way.summary);
	const fork = way.steps.findIndex(step => !step.common);
	$('steps').replaceChildren(...way.steps.map((step, index) => {
		const lines = [element('span', {textContent: stepText(step)}), element('code', {textContent: step.rule})];
		if (step.element) lines.push(element('code', {textContent: step.element}));
		if (index === fork) lines.unshift(element('em', {textContent: `From here on as for ${way.backends[0].address}. `}));
		return element('li', {}, ...lines);
	}));
	const rows = way.backends.map(b => [b.address, `${b.share} (${+b.percent.toFixed(2)} %)`, b.remark && `masqueraded: ${b.remark}`])
		.concat(way.left_out.map(b => [b.address, 'none', b.reason]));
	$('backends').tBodies[0].replaceChildren(...rows.map(([address, share, remark]) => element('tr', {},
		element('td', {textContent: address, className: 'address'}),
		element('td', {textContent: share}), element('td', {textContent: remark}))));
}

// --- Gauges ---

function plot(id, values) {
	const top = Math.max(...values, 1e-9);
	const at = i => (100 - (values.length - 1 - i) * 100 / (POINTS - 1)).toFixed(2); // the newest is at the right
	const points = values.map((v, i) => `${at(i)},${(24 - 22 * v / top).toFixed(2)}`);
	if (points.length === 1) points.unshift(`98,${points[0].split(',')[1]}`);
	const svg = $(id);
	svg.setAttribute('viewBox', '0 0 100 26');
	svg.setAttribute('preserveAspectRatio', 'none');
	const line = svg.firstChild || svg.appendChild(document.createElementNS(SVG, 'polyline'));
	line.setAttribute('points', points.join(' '));
}

function addPoints(name, more) {
	state.plots[name] = state.plots[name].concat(more).slice(-POINTS);
	plot(`${name}-plot`, state.plots[name]);
}

function showGauges(g) {
	setText('n-services', g.services.toLocaleString('en'));
	setText('n-endpoints', `${g.endpoints.toLocaleString('en')} endpoints`);
	setText('repairs', g.repairs.toLocaleString('en'));
	$('repairs').className = g.repairs ? 'bad' : '';
	setText('health', !g.healthy ? 'not healthy' : g.degraded ? 'degraded' : 'healthy');
	$('health').className = g.healthy && !g.degraded ? '' : 'bad';
	setText('reason', g.reason || g.degraded);
	$('reason').title = g.reason || g.degraded;
	if (!g.conntrack_max) { setText('conntrack', 'not known'); return; }
	setText('conntrack', `${(100 * g.conntrack / g.conntrack_max).toFixed(1)} %`);
	$('conntrack').title = `${g.conntrack} of ${g.conntrack_max} entries`;
	addPoints('conntrack', [g.conntrack / g.conntrack_max]);
}

function showSyncs(list) {
	const last = list[list.length - 1];
	setText('sync', last.good ? `${last.ms.toFixed(last.ms < 10 ? 1 : 0)} ms` : 'failed');
	$('sync').className = last.good ? '' : 'bad';
	$('sync').title = `${last.family}, ${last.services} changed, ${last.full ? 'full' : 'partial'}`;
	addPoints('sync', list.map(sync => sync.ms));
}

function showTroubles(list) {
	for (const trouble of list) state.troubles.set(trouble.id, trouble);
	const latest = [...state.troubles.values()].sort((a, b) => b.at - a.at || b.id - a.id).slice(0, TROUBLES);
	state.troubles = new Map(latest.map(trouble => [trouble.id, trouble]));
	$('errors').hidden = !latest.length;
	$('errors').replaceChildren(...latest.map(trouble => {
		const when = new Date(trouble.at * 1000);
		const times = trouble.times > 1 ? ` (${trouble.times} times)` : '';
		return element('p', {}, element('time', {dateTime: when.toISOString(), textContent: when.toLocaleTimeString()}),
			trouble.text + times);
	}));
}

function takeTraffic(now) {
	const before = state.traffic;
	state.traffic = now;
	if (!before || now.ms <= before.ms) return;
	const seconds = (now.ms - before.ms) / 1000;
	state.rates = new Map(Object.entries(now.connections).map(([id, total]) =>
		[id, Math.max(0, total - (before.connections[id] ?? total)) / seconds]));
	drawSoon(state.sort.by === 'rate');
}

// --- Live ---

function greet(hello) {
	setText('node', hello.node);
	setText('facts', `${hello.mode} mode, Portolan ${hello.version}, for Kubernetes ${hello.kubernetes}`);
	document.title = `Portolan: ${hello.node}`;
	$('table').classList.toggle('no-rates', !hello.rates);
	$('rates-note').hidden = hello.rates;
}

function say(text, name) {
	setText('link', text);
	$('link').className = name;
}

function begin() {
	say('live', 'live');
	state.loading = new Set();
	state.traffic = null;
	state.plots.sync = [];
	state.troubles.clear();
	showTroubles([]);
}

// A browser tries again by itself when a connection ends, and gives up when it is refused.
function follow() {
	const stream = new EventSource('status/events');
	const on = (name, act) => stream.addEventListener(name, event => act(JSON.parse(event.data)));
	stream.onopen = begin;
	stream.onerror = () => {
		say('no connection, trying again', 'lost');
		if (stream.readyState === EventSource.CLOSED) setTimeout(follow, RETRY_MS);
	};
	on('hello', greet);
	on('gauges', showGauges);
	on('syncs', showSyncs);
	on('troubles', showTroubles);
	on('services', takeServices);
	on('loaded', allTold);
	on('traffic', takeTraffic);
}

// --- Hands ---

function search(words) {
	document.body.classList.remove('with-chart');
	$('search').value = words;
	$('list').scrollTop = 0;
	state.chosen = null;
	find();
	$('search').focus();
}

$('search').addEventListener('input', () => { $('list').scrollTop = 0; state.chosen = null; find(); });
$('search').addEventListener('keydown', event => {
	if (event.key === 'ArrowDown' || event.key === 'Enter') {
		event.preventDefault();
		$('table').focus();
		choose(0);
		if (event.key === 'Enter' && state.chosen) open(state.chosen);
	} else if (event.key === 'Escape' && $('search').value) {
		event.preventDefault();
		event.stopPropagation();
		$('search').value = '';
		find();
	}
});
$('list').addEventListener('scroll', () => drawSoon(false));
$('table').addEventListener('focus', () => { if (!state.places.has(state.chosen)) choose(0); });
$('list').addEventListener('click', event => {
	const row = event.target.closest('.row');
	if (!row) return;
	state.chosen = row.dataset.id;
	open(row.dataset.id);
});
$('table').addEventListener('keydown', event => {
	const at = state.places.get(state.chosen) ?? -1;
	const page = Math.max(1, Math.floor($('list').clientHeight / ROW) - 1);
	const moves = {ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: state.shown.length - 1};
	if (event.target !== $('table') || event.ctrlKey || event.altKey || event.metaKey) return;
	if (event.key in moves) { event.preventDefault(); choose(moves[event.key]); }
	else if ((event.key === 'Enter' || event.key === ' ') && at >= 0) { event.preventDefault(); open(state.chosen); }
});
document.addEventListener('keydown', event => {
	if (event.key === 'Escape' && (state.opened || document.body.classList.contains('with-chart'))) shut();
	else if (event.key === '/' && !['INPUT', 'SELECT'].includes(document.activeElement.tagName)) {
		event.preventDefault();
		$('search').focus();
		$('search').select();
	}
});
$('close').addEventListener('click', shut);
$('show-chart').addEventListener('click', () => { document.body.classList.add('with-chart'); $('details').focus(); showNode(); });
$('from').addEventListener('change', explain);
$('from').addEventListener('submit', event => event.preventDefault());
window.addEventListener('resize', () => drawSoon(false));
setInterval(() => drawSoon(false), 10000); // what changed grows older

drawHeads();
follow();
