// layout.js: places for the nodes of a graph, in layers. Edges that pass over layers get a point in
// each, which is placed like a small node, so that they go around what is between.

// boxes: [{id, args}]; size: {across, along}: a node's extent within its layer and from layer to
// layer; gaps likewise. Returns {places: Map id -> {across, along}, edges: [{from, to, points}],
// across, along}.
export function layoutOf(boxes, size, gap) {
  const layer = layersOf(boxes), items = new Map(), rows = [], edges = [];
  const put = (key, at, wide) => {
    const item = { key, wide, before: [], after: [], at: 0 };
    items.set(key, item);
    (rows[at] ??= []).push(item);
    return item;
  };
  for (const box of boxes) put(box.id, layer.get(box.id), size.across);
  const link = (a, b) => {
    a.after.push(b);
    b.before.push(a);
  };
  for (const box of boxes)
    for (const from of new Set(box.args)) {
      const chain = [items.get(from)];
      for (let at = layer.get(from) + 1; at < layer.get(box.id); at++)
        chain.push(put(`${from}>${box.id}@${at}`, at, gap.across / 2));
      chain.push(items.get(box.id));
      for (let i = 1; i < chain.length; i++) link(chain[i - 1], chain[i]);
      edges.push({ from, to: box.id, chain, layer: layer.get(from) });
    }
  order(rows);
  spread(rows, gap.across);

  const pitch = size.along + gap.along, left = Math.min(...[...items.values()].map(i => i.at - i.wide / 2));
  const place = b => ({ across: items.get(b.id).at - left, along: layer.get(b.id) * pitch + size.along / 2 });
  return {
    places: new Map(boxes.map(b => [b.id, place(b)])),
    // From the far side of one node to the near side of the other; past a layer straight, so that
    // bends lie between layers only.
    edges: edges.map(e => ({ from: e.from, to: e.to, points: e.chain.flatMap((item, i) => {
      const across = item.at - left, along = (e.layer + i) * pitch;
      return i === 0 ? [{ across, along: along + size.along }] : i === e.chain.length - 1 ? [{ across, along }]
        : [{ across, along }, { across, along: along + size.along }];
    }) })),
    across: Math.max(...[...items.values()].map(i => i.at + i.wide / 2)) - left,
    along: (rows.length - 1) * pitch + size.along,
  };
}

// A node stands after all it reads; an input just before the first that reads it.
function layersOf(boxes) {
  const layer = new Map();
  for (const box of boxes)
    layer.set(box.id, box.args.length === 0 ? 0 : 1 + Math.max(...box.args.map(a => layer.get(a))));
  for (const box of boxes) {
    if (box.args.length > 0) continue;
    const readers = boxes.filter(b => b.args.includes(box.id)).map(b => layer.get(b.id));
    if (readers.length > 0) layer.set(box.id, Math.min(...readers) - 1);
  }
  return layer;
}

const mean = list => list.reduce((a, b) => a + b, 0) / list.length;

// Fewer crossings: each layer sorted by the mean place of its neighbours, up and down; the best
// order seen is kept.
function order(rows) {
  const number = () => rows.forEach(row => row.forEach((item, i) => { item.at = i - (row.length - 1) / 2; }));
  const crossings = () => rows.reduce((sum, row) => {
    const pairs = row.flatMap(item => item.after.map(next => [item.at, next.at]));
    for (let i = 0; i < pairs.length; i++)
      for (let j = 0; j < i; j++) if ((pairs[i][0] - pairs[j][0]) * (pairs[i][1] - pairs[j][1]) < 0) sum++;
    return sum;
  }, 0);
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
  for (let round = 0; round < 40; round++)
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
