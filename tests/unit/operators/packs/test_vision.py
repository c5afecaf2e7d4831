"""Operators on pictures: what they see, what they refuse, and that pictures are decoded once."""

from __future__ import annotations

import base64
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.data import data_dir

from tamis.errors import TamisError
from tamis.operators.operator import Operator
from tamis.operators.packs import pictures
from tamis.operators.packs.pictures import LARGEST, Picture, PictureCache, PictureError, decoded
from tamis.operators.packs.vision import (
    LONGEST,
    brightness,
    faceCount,
    imageSize,
    motion,
    pedestrianCount,
)
from tamis.workload.drones_images import Scene, paint
from tests.running import run_script

COUNTERS = (brightness, imageSize, faceCount, pedestrianCount)


def encoded(picture: Picture, form: str = ".png") -> bytes:
    done, found = cv2.imencode(form, picture)
    assert done
    return found.tobytes()


def plain(grey: int, width: int = 64, height: int = 48) -> Picture:
    return np.full((height, width, 3), grey, np.uint8)


def photograph() -> Picture:
    """A portrait of an astronaut."""
    return shipped("astronaut.png")


def shipped(name: str) -> Picture:
    """A photograph that comes with scikit-image."""
    found = cv2.imread(str(Path(data_dir) / name))
    assert found is not None
    return found


def png_head(width: int, height: int) -> bytes:
    """A PNG that says how large it is and has nothing in it."""
    head = b"IHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"
    check = zlib.crc32(head).to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + head + check


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> PictureCache:
    """A cache of the test's own, empty."""
    fresh = PictureCache(1 << 26)
    monkeypatch.setattr(pictures, "_cache", fresh)
    return fresh


# --- what they see ---------------------------------------------------------------------------


def test_brightness_is_the_mean_of_the_luminance() -> None:
    """Of equal amounts green looks brightest and blue darkest."""
    for grey in (0, 1, 127, 255):
        assert brightness(encoded(plain(grey))) == grey
    blue, green, red = (np.roll([255, 0, 0], at).astype(np.uint8) for at in range(3))
    found = [brightness(encoded(plain(0) + colour)) for colour in (blue, green, red)]
    assert found == pytest.approx([29, 150, 76], abs=1)
    half = plain(100)
    half[:, :32] = 200
    assert brightness(encoded(half)) == 150


@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([".png", ".jpg"]))
@settings(max_examples=30)
def test_size_is_width_and_height(width: int, height: int, form: str) -> None:
    assert imageSize(encoded(plain(9, width, height), form)) == (width, height)


def test_grey_transparent_and_deep_pictures_are_pictures_too() -> None:
    for picture in (
        np.full((5, 7), 80, np.uint8),
        np.full((5, 7, 4), 80, np.uint8),
        np.full((5, 7, 3), 80 * 257, np.uint16),
    ):
        data = encoded(picture)
        assert imageSize(data) == (7, 5)
        assert brightness(data) == pytest.approx(80, abs=1)


def test_an_astronaut_has_one_face_and_two_have_two() -> None:
    assert faceCount(encoded(photograph())) == 1
    assert faceCount(encoded(photograph(), ".jpg")) == 1
    head = photograph()[:256, 100:356]
    assert faceCount(encoded(np.hstack([head, head]))) == 2


def test_a_wall_has_no_face_and_nobody_before_it() -> None:
    wall = encoded(plain(120, 320, 240))
    assert faceCount(wall) == 0
    assert pedestrianCount(wall) == 0
    assert faceCount(encoded(shipped("brick.png"))) == 0
    assert faceCount((Path(data_dir) / "coffee.png").read_bytes()) == 0


@pytest.mark.parametrize("people", [0, 1, 2, 3])
def test_pedestrians_that_are_drawn_are_counted(people: int) -> None:
    """Exactly with nothing behind them, as the majority of a few pictures."""
    found = []
    for seed in range(5):
        picture = paint(Scene(pedestrians=people), np.random.default_rng(seed))
        found.append(pedestrianCount(encoded(picture)))
    assert sorted(found)[2] == people


def test_what_is_smaller_than_anybody_shows_nobody() -> None:
    for width, height in ((1, 1), (20, 300), (300, 20), (33, 97), (1, 9000), (9000, 1)):
        assert pedestrianCount(encoded(plain(90, width, height))) == 0
        assert faceCount(encoded(plain(90, width, height))) == 0


def test_large_pictures_are_reduced_first() -> None:
    large = cv2.resize(photograph(), None, fx=5, fy=5)
    assert large.shape[0] > LONGEST
    assert faceCount(encoded(large, ".jpg")) == 1


def test_motion_is_the_share_that_changed() -> None:
    before, after = plain(50, 100, 100), plain(50, 100, 100)
    after[:, :25] = 200
    # The blur lets the edge reach a pixel or two further.
    assert motion(encoded(after), encoded(before)) == pytest.approx(0.25, abs=0.02)
    assert motion(encoded(before), encoded(after)) == motion(encoded(after), encoded(before))
    one = encoded(photograph())
    assert motion(one, one) == 0
    with pytest.raises(PictureError, match="one size, not 32 × 48 with 64 × 48"):
        motion(encoded(plain(1, 64)), encoded(plain(1, 32)))


def test_noise_does_not_move() -> None:
    rng = np.random.default_rng(0)
    before, after = (
        np.clip(plain(120, 200, 200) + rng.normal(0, 5, (200, 200, 3)), 0, 255).astype(np.uint8)
        for _ in range(2)
    )
    assert motion(encoded(after), encoded(before)) == 0


# --- what they take --------------------------------------------------------------------------


@pytest.mark.parametrize("asked", COUNTERS)
def test_base64_is_the_same_picture(asked: Operator) -> None:
    given = encoded(photograph())
    text = base64.b64encode(given).decode()
    lines = "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    wanted = asked(given)
    assert asked(text) == wanted
    assert asked(lines) == wanted
    assert asked(bytearray(given)) == asked(memoryview(given)) == wanted


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (b"", "neither PNG nor JPEG"),
        (b"GIF89a and so on", "neither PNG nor JPEG: it begins with b'GIF89a a'"),
        (encoded(plain(1))[:60], "broken or cut"),
        (encoded(plain(1))[:20], "neither PNG nor JPEG"),
        (encoded(photograph(), ".jpg")[:5000], "broken or cut"),
        (b"\xff\xd8\xff\xd9", "a JPEG without a frame"),
        (b"\xff\xd8\xff" + bytes(100), "a JPEG without a frame"),
        (png_head(1, 1), "broken or cut"),
        (png_head(0, 5), "decoded"),
        (png_head(100_000, 100_000), f"100000 × 100000 pixels is more than {LARGEST}"),
        ("not base64!", "has to be base64"),
        ("päng", "has to be base64"),
        (17, "not int"),
        ({"png": ""}, "not dict"),
    ],
)
@pytest.mark.parametrize("asked", COUNTERS)
def test_a_broken_picture_is_refused_with_the_reason(
    asked: Operator, image: object, says: str
) -> None:
    with pytest.raises(ValueError, match="image") as refused:
        asked(image)
    assert says in str(refused.value)
    assert isinstance(refused.value, PictureError)
    assert isinstance(refused.value, TamisError)


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_a_jpeg_of_noise_never_does_anything_else(rest: bytes) -> None:
    with pytest.raises(PictureError):
        decoded(b"\xff\xd8\xff" + rest)


def test_a_huge_jpeg_is_refused_too() -> None:
    """Its size is behind other segments, one of them padded."""
    comment = b"\xff\xfe\x00\x06tiny"
    frame = b"\xff\xff\xc2\x00\x11\x08\xff\xff\xff\xff"
    with pytest.raises(PictureError, match="65535 × 65535 pixels"):
        decoded(b"\xff\xd8" + comment + frame + bytes(20))


def test_opencv_says_nothing_about_a_picture_that_is_cut(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Why it was refused is in the report; a line for each event on standard error helps nobody."""
    whole = encoded(plain(7))
    with pytest.raises(PictureError):
        decoded(whole[: len(whole) - 14])
    assert "WARN" not in capfd.readouterr().err


# --- the cache -------------------------------------------------------------------------------


def test_a_picture_is_decoded_once_for_all(cache: PictureCache) -> None:
    given = encoded(photograph())
    for asked in COUNTERS:
        asked(given)
    motion(base64.b64encode(given).decode(), bytearray(given))
    assert cache.decodes == 1


def test_with_and_without_a_cache_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    images = [
        encoded(paint(Scene(faces=k % 4, pedestrians=k % 3, light=1 - k / 12), rng))
        for k in range(6)
    ]
    ask = [(asked, image) for image in images for asked in COUNTERS]
    with_cache = [asked(image) for asked, image in ask * 2]
    none = PictureCache(0)
    monkeypatch.setattr(pictures, "_cache", none)
    assert [asked(image) for asked, image in ask * 2] == with_cache
    assert none.decodes == 2 * len(ask)


def test_a_decoded_picture_cannot_be_written_to() -> None:
    found = decoded(encoded(plain(7)))
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 0


def test_the_cache_forgets_the_oldest_and_keeps_within_its_room() -> None:
    room = 4 * plain(0).nbytes
    cache = PictureCache(room)
    images = [encoded(plain(grey)) for grey in range(8)]
    for image in images:
        cache.picture(image)
        cache.picture(images[0])  # asked for again and again, and so kept
        assert cache.used <= room
    assert cache.decodes == 8
    cache.picture(images[1])
    assert cache.decodes == 9
    cache.picture(images[7])
    assert cache.decodes == 9


def test_what_is_larger_than_the_room_is_not_kept() -> None:
    cache = PictureCache(10)
    for _ in range(2):
        cache.picture(encoded(plain(1)))
    assert cache.decodes == 2
    assert cache.used == 0


def test_threads_see_the_same() -> None:
    rng = np.random.default_rng(4)
    images = [encoded(paint(Scene(faces=k % 3, pedestrians=k % 2), rng)) for k in range(8)]
    ask = [(asked, image) for image in images for asked in COUNTERS]
    one_by_one = [asked(image) for asked, image in ask]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda pair: pair[0](pair[1]), ask)) == one_by_one


def test_the_interpreter_ends_though_a_detector_is_still_looking() -> None:
    # A thread that comes back from OpenCV to an interpreter that is gone takes the process down.
    script = """
        import cv2, numpy
        from tamis.operators import Runner
        from tamis.operators.packs.vision import pedestrianCount

        noise = numpy.random.default_rng(1).integers(0, 255, (640, 640, 3), numpy.uint8)
        picture = cv2.imencode(".png", noise)[1].tobytes()
        pedestrianCount.timeout = 0.005
        print([each.kind for each in Runner().call(pedestrianCount, [(picture,)] * 2, (None,))])
    """
    ended = run_script(script, check=False)
    assert (ended.returncode, ended.stdout) == (0, "['timeout', 'timeout']\n")
