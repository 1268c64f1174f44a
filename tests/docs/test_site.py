"""Pages of the site that are made from the code hold all of it, links lead to pages, and faults of a site are found."""

from __future__ import annotations

from pathlib import Path

import pytest

import raysim
from docs.site import cards, catalog, interface, markdown, methods, options, purposes, staging, studies
from docs.site.__main__ import main
from docs.site.links import faults
from raysim.config import registry
from raysim.config.options import options_of_class
from raysim.config.run_config import OWN, options_of
from tests.long_tests import long


def test_every_option_is_on_a_page_with_range_and_default() -> None:
    pages = dict(options.section_pages())
    for path, option in options_of({}).items():
        page = pages["run" if path in OWN else path.partition(".")[0]]
        assert f"[`--{path}`]{{#{options.anchor(path)}}}" in page
        assert markdown.plain(option.allowed()) in page
    momentum = pages["training"].partition("`--training.momentum`")[2].partition("\n\n")[0]
    assert "Momentum of sgd" in momentum and "Default `0.0`" in momentum and "≥ 0, \\< 1" in momentum
    assert "only with training.optimizer sgd" in momentum
    assert "no result depends on it" in pages["engine"].partition("`--engine.actors`")[2].partition("\n\n")[0]


def test_a_page_of_a_method_has_the_form_of_all_and_its_own_rows() -> None:
    page = methods.page("fedprox")
    assert "(μ/2)‖w − θ‖²" in page and "no partial work of stragglers" in page and "| PFLlib | 1e-07" in page
    assert "[`--method.mu`]{#option-method-mu}" in page and "Li et al. 2020, Eq. 2" in page
    assert "| FedProx |" in page and "| FedAvg |" not in page
    assert (
        "| FedProx | [FedRAD, amounts of data" in page
        and "(../../results/fedrad-table2.md) | 611 kB | 611 kB |" in page
    )
    assert sorted(methods.names()) == sorted(registry.known("method"))
    assert [name for name in methods.names() if not purposes.purpose(name)] == [], "docs/site/purposes.py lacks it"
    named = [name for group in purposes.PURPOSES.values() for name in group]
    assert sorted(named) == sorted(methods.names())


def test_every_workload_and_model_is_on_one_page() -> None:
    for kind in ("workload", "model"):
        grouped = [name for names in catalog.groups(kind).values() for name in names]
        assert sorted(grouped) == sorted(registry.known(kind))
    assert catalog.title_of("new_specs") == "New models" and catalog.title_of("signals") == "Signals"
    text = dict(catalog.pages("workload"))["tables"]
    for path in options_of_class("workload", registry.resolve("workload", "adult")):
        assert f"{{#option-workload-adult-{path.partition('.')[2]}}}" in text
    assert "License: CC BY 4.0" in text


def test_every_public_name_is_in_the_reference() -> None:
    grouped = [name for names in interface.GROUPS.values() for name in names]
    assert sorted([*grouped, *interface.option_types(), "__version__"]) == sorted(raysim.__all__)
    page = interface.api()
    assert all(f"raysim.{name}" in page or f"raysim.training.{name}" in page for name in raysim.__all__)
    assert "| `raysim.Share` | a finite number ≥ 0, ≤ 1 |" in page


def test_every_study_has_a_card() -> None:
    assert sorted(studies.names()) == sorted(path.stem for path in (studies.DOCS / "studies").glob("*.yaml"))


def test_a_card_says_time_and_proofs() -> None:
    card = studies.gallery().partition("SCAFFOLD against FedAvg on digits")[2].partition("::::\n")[0]
    assert "50 of 50 runs kept, about " in card and " on two cores" in card and "heads of 50 proofs: `" in card
    assert studies.two_cores(7300) == "61 minutes" and studies.two_cores(1) == "1 seconds"
    assert studies.proof_of("compression") == "made before heads of proofs were kept"


def test_a_card_has_a_picture_where_runs_are_kept() -> None:
    for name in ("comparing", "compression", "fedssp-folds"):  # drawn for the card, by the study, no runs yet
        card = studies.gallery().partition(f":link: results/{name}\n")[2].partition("::::\n")[0]
        assert (":img-top: " in card) == (studies.kept(name)[0] > 0), name
    drawn = cards.picture("comparing")
    assert drawn is not None and drawn.startswith(b"\x89PNG")


def test_a_picture_with_a_dark_form_is_shown_in_both(tmp_path: Path) -> None:
    text = staging.rewritten("docs/time.md", "time.md", staging.pages_of_the_site(), tmp_path)
    assert "(pictures/modes.png){.only-light}\n![" in text and "(pictures/modes-dark.png){.only-dark}" in text
    assert "(pictures/timeline.png)\n" in text


def test_signs_of_formulas_are_shown_as_they_are() -> None:
    def method() -> None:
        """Weight λ of |h - c_y|² in ``loss(x)``.

            θ⁺ = Σ p_k θ_k

        Decided here:
        - one,
          and more
        - two

        It ends.
        """

    first, equation, words, decided, last = markdown.docstring(method).split("\n\n")
    assert words == "Decided here:" and decided == "- one, and more\n- two"
    assert first == "Weight λ of \\|h - c\\_y\\|² in `loss(x)`." and last == "It ends."
    assert equation == "```text\nθ⁺ = Σ p_k θ_k\n```"


def test_heads_of_proofs_are_a_line_each() -> None:
    text = "Heads of the runs' proofs, seed: first digits.\na: 0: 12ab.\nb: 0: 34cd.\n<!-- end of table -->\n"
    lines = markdown.heads_as_lines(text).splitlines()
    assert lines[1:] == ["", "```text", "a: 0: 12ab.", "b: 0: 34cd.", "```", "<!-- end of table -->"]


def test_links_of_a_page_lead_to_pages_of_the_site(tmp_path: Path) -> None:
    text = staging.rewritten("docs/methods.md", "reference/methods.md", staging.pages_of_the_site(), tmp_path)
    assert "[fedavg.py](methods/fedavg.md)" in text and "[fedrad.md](../fedrad.md)" in text
    assert "[flat_model.py](../files/raysim/flat_model.py)" in text
    assert (tmp_path / "files" / "raysim" / "flat_model.py").is_file()


def test_faults_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="#here"></a><a href="b.html#there"></a><a href="b.html#gone"></a><a href="c.html">'
        '</a><a href="https://example.org"></a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    assert faults(tmp_path) == [
        "a.html fetches https://example.org/x.js",
        "a.html links to b.html#gone, which has no such place",
        "a.html links to c.html, which is not there",
    ]


def test_a_folder_with_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old.html").touch()
    assert main([str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err


@long
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    assert main([str(tmp_path / "site")]) == 0
    assert "fedprox" in (tmp_path / "site" / "llms.txt").read_text()
    assert "notebook-" in (tmp_path / "site" / "notebook.html").read_text()
