// layout.js: places for the nodes of a graph, in layers. Edges that pass over layers get a point in
// each, which is placed like a small node, so that they go around what is between.

const manyBoxes = 300;

// boxes: [{id, args, across, along}]: a node's extent within its layer and from layer to layer;
// gaps likewise. Returns {places: Map id -> {across, along}, edges: [{from, to, points}], layer:
// Map id -> layer, starts and deep: of layers, across, along}. An edge that passes over more layers
// than `mostPassed` is not led around what is between: it has `far` and only its ends as points.
export function layoutOf(boxes, gap, mostPassed = Infinity) {
  const layer = layersOf(boxes), items = new Map(), rows = [], edges = [];
  const put = (key, at, wide) => {
    const item = { key, wide, before: [], after: [], at: 0 };
    items.set(key, item);
    (rows[at] ??= []).push(item);
    return item;
  };
  for (const box of boxes) put(box.id, layer.get(box.id), box.across);
  const link = (a, b) => {
    a.after.push(b);
    b.before.push(a);
  };
  for (const box of boxes)
    for (const from of new Set(box.args)) {
      const chain = [items.get(from)], passed = layer.get(box.id) - layer.get(from) - 1;
      const far = passed > mostPassed;
      for (let at = layer.get(from) + 1; at < layer.get(box.id) && !far; at++)
        chain.push(put(`${from}>${box.id}@${at}`, at, gap.across / 2));
      chain.push(items.get(box.id));
      for (let i = 1; i < chain.length && !far; i++) link(chain[i - 1], chain[i]);
      edges.push({ from, to: box.id, chain, far, layer: layer.get(from), end: layer.get(box.id) });
    }
  order(rows);
  spread(rows, gap.across);

  let left = Infinity, right = -Infinity;
  for (const item of items.values()) {
    left = Math.min(left, item.at - item.wide / 2);
    right = Math.max(right, item.at + item.wide / 2);
  }
  const deep = []; // each layer as deep as its deepest node, which stand in its middle
  for (const box of boxes) deep[layer.get(box.id)] = Math.max(deep[layer.get(box.id)] ?? 0, box.along);
  const starts = [];
  deep.reduce((at, extent, i) => (starts[i] = at) + extent + gap.along, 0);
  const extents = new Map(boxes.map(b => [b.id, b.along])), middle = at => starts[at] + deep[at] / 2;
  const place = b => ({ across: items.get(b.id).at - left, along: middle(layer.get(b.id)) });
  // From the far side of one node to the near side of the other; past a layer straight, so that
  // bends lie between layers only.
  const points = e => e.chain.flatMap((item, i) => {
    const across = item.at - left, at = e.layer + i;
    if (i === 0) return [{ across, along: middle(e.layer) + extents.get(e.from) / 2 }];
    if (i === e.chain.length - 1) return [{ across, along: middle(e.end) - extents.get(e.to) / 2 }];
    return [{ across, along: starts[at] }, { across, along: starts[at] + deep[at] }];
  });
  return {
    places: new Map(boxes.map(b => [b.id, place(b)])),
    edges: edges.map(e => ({ from: e.from, to: e.to, far: e.far, points: points(e) })),
    layer, starts, deep, across: right - left, along: starts.at(-1) + deep.at(-1),
  };
}

// A node stands after all it reads; an input just before the first that reads it.
function layersOf(boxes) {
  const layer = new Map(), firstReader = new Map();
  for (const box of boxes) {
    layer.set(box.id, box.args.reduce((most, a) => Math.max(most, layer.get(a) + 1), 0));
    for (const a of box.args)
      firstReader.set(a, Math.min(firstReader.get(a) ?? Infinity, layer.get(box.id)));
  }
  for (const box of boxes)
    if (box.args.length === 0 && firstReader.has(box.id)) layer.set(box.id, firstReader.get(box.id) - 1);
  return layer;
}

const mean = list => list.reduce((a, b) => a + b, 0) / list.length;

// Fewer crossings: each layer sorted by the mean place of its neighbours, up and down; the best
// order seen is kept.
function order(rows) {
  const number = () => rows.forEach(row => row.forEach((item, i) => { item.at = i - (row.length - 1) / 2; }));
  const crossings = () => rows.reduce((sum, row) => sum + crossingsBehind(row), 0);
  number();
  let best = rows.map(row => [...row]), fewest = crossings();
  for (let round = 0; round < 12 && fewest > 0; round++) {
    const side = round % 2 === 0 ? "before" : "after";
    for (const row of side === "before" ? rows : [...rows].reverse()) {
      const key = new Map(row.map(item => [item, item[side].length ? mean(item[side].map(o => o.at)) : item.at]));
      row.sort((a, b) => key.get(a) - key.get(b));
      row.forEach((item, i) => { item.at = i - (row.length - 1) / 2; });
    }
    const now = crossings();
    if (now < fewest) {
      fewest = now;
      best = rows.map(row => [...row]);
    }
  }
  best.forEach((row, i) => { rows[i] = row; });
  number();
}

// How many pairs of lines from this layer to the next one cross. Lines are taken in the order of
// their starts; each crosses the earlier ones that end behind it, and a Fenwick tree counts those.
function crossingsBehind(row) {
  const ends = [...new Set(row.flatMap(item => item.after.map(next => next.at)))].sort((a, b) => a - b);
  const rank = new Map(ends.map((at, i) => [at, i + 1])), tree = new Array(ends.length + 1).fill(0);
  let lines = 0, crossed = 0;
  for (const item of row) {
    const ranks = item.after.map(next => rank.get(next.at));
    for (const r of ranks) {
      let notBehind = 0;
      for (let i = r; i > 0; i -= i & -i) notBehind += tree[i];
      crossed += lines - notBehind;
    }
    for (const r of ranks) {
      for (let i = r; i < tree.length; i += i & -i) tree[i]++;
      lines++;
    }
  }
  return crossed;
}

// Places in the order found: each item near the mean of its neighbours, never nearer to the next
// than the gap.
function spread(rows, gap) {
  for (const row of rows) {
    let at = 0;
    for (const item of row) {
      item.at = at + item.wide / 2;
      at += item.wide + gap;
    }
    row.forEach(item => { item.at -= (at - gap) / 2; });
  }
  const rounds = rows.length > manyBoxes ? 6 : 40;
  for (let round = 0; round < rounds; round++)
    for (const row of round % 2 === 0 ? rows : [...rows].reverse()) {
      const wish = row.map(item => {
        const near = [...item.before, ...item.after];
        return near.length ? (mean(near.map(o => o.at)) + item.at) / 2 : item.at;
      });
      settle(row, wish, gap);
    }
}

// The nearest places to the wishes that keep order and distance: neighbours that would overlap move
// as one block.
function settle(row, wish, gap) {
  const blocks = [];
  row.forEach((item, i) => {
    let block = { items: [item], wish: [wish[i]], offset: [0] };
    block.at = wish[i];
    blocks.push(block);
    while (blocks.length > 1) {
      const last = blocks[blocks.length - 1], before = blocks[blocks.length - 2], end = before.items.length - 1;
      const room = before.items[end].wide / 2 + gap + last.items[0].wide / 2;
      if (before.at + before.offset[end] + room <= last.at) break;
      const shift = before.offset[end] + room;
      before.items.push(...last.items);
      before.wish.push(...last.wish);
      before.offset.push(...last.offset.map(o => o + shift));
      before.at = mean(before.wish.map((w, k) => w - before.offset[k]));
      blocks.pop();
    }
  });
  for (const block of blocks) block.items.forEach((item, k) => { item.at = block.at + block.offset[k]; });
}
