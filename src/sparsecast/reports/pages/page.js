for (const figure of document.querySelectorAll("[data-chart]")) {
  const spec = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = isDark ? { theme: "dark" } : {};
  // A chart that fails leaves the drawn one in its place.
  const drawn = document.createElement("div");
  vegaEmbed(drawn, { ...spec, background: null }, { ...theme, mode: "vega-lite", actions: false, renderer: "svg" })
    .then(() => figure.replaceChildren(drawn))
    .catch((error) => console.warn(error));
}
